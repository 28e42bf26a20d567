"""Diagnosis with a Bayesian network: what is likely, which missing test to do next, and what a treatment would do.

With pgmpy installed, the same on alarm, the classic network of a patient under anaesthesia: `pip install pgmpy`.
"""

import importlib.util
from pathlib import Path

import pgcc

clinic = pgcc.compile(pgcc.load(Path(__file__).parent / "cough.bif"))
seen = {"fever": "mild", "cough": "productive"}


def told(numbers):
    return ", ".join(f"{state} {p:.3f}" for state, p in numbers.items())


# What is likely? Tests that were not made are left out, and summed out.
print("illness:", told(clinic.marginals(seen)["illness"]))
print("given a negative test:", told(clinic.marginals(seen | {"rapid_test": "negative"})["illness"]))

# Which question or test tells most about the illness, by mutual information?
missing = [name for name in clinic.variables if name not in seen and name not in ("illness", "treatment", "days_off")]
worth = {name: clinic.mutual_information("illness", name, seen) for name in missing}
best = max(worth, key=worth.get)
print("ask next:", best, f"({worth[best]:.3f} nats)")

# The whole story that is most probable; and the illness that is, whatever else is true (MAP).
print("explanation:", clinic.mode(seen))
print("illness alone:", clinic.mode(seen, over="illness").assignment)

# An inhaler goes to people who are ill in another way, so that what is seen is not what it does.
inhaler = {"treatment": "inhaler"}
print("days off, inhaler seen:", told(clinic.marginals(inhaler)["days_off"]))
print("days off, inhaler given:", told(clinic.do(inhaler).marginals()["days_off"]))

# Which numbers of the network does the answer depend on most?
for influence in clinic.sensitivity("illness=bronchitis", seen)[:2]:
    print(f"depends on: {influence} = {influence.value}; its odds ±10 %: {influence.low:.3f} to {influence.high:.3f}")

# A table of patients, with gaps, is one call.
rows = ["fever=high, cough=dry", "fever=none", "cough=productive, smoker=yes"]
for row, p in zip(rows, clinic.conditional("illness=flu", given=rows).round(3).tolist(), strict=True):
    print(f"Pr(flu | {row}) = {p}")

found = importlib.util.find_spec("pgmpy")
alarm = Path(found.origin).parent / "utils" / "example_models" / "alarm.bif.gz" if found and found.origin else None
if alarm is not None and alarm.exists():
    patient = pgcc.compile(pgcc.load(alarm))
    signs = {"HRBP": "HIGH", "CO": "LOW", "BP": "LOW"}
    likely = {name: p["TRUE"] for name, p in patient.marginals(signs).items() if "TRUE" in p}
    first = sorted(likely, key=likely.get, reverse=True)[:3]
    print("alarm:", ", ".join(f"{name} {likely[name]:.3f}" for name in first))
