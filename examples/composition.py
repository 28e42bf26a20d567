"""A menu by composition: dishes repel each other, ingredients of a dish go together, and guests bring salt."""

from fractions import Fraction
from itertools import combinations

import pgcc

# Ingredients of a dish: mostly all of them.
pasta = pgcc.parse("0.8*noodles*tomato + 0.1*noodles + 0.1*tomato")
curry = pgcc.parse("0.7*rice*cumin + 0.2*rice*salt*cumin + 0.1*rice")
salad = pgcc.mixture(["3/4", "1/4"], [pgcc.parse("lettuce*oil"), pgcc.parse("lettuce")])
dishes = [pasta, curry, salad]

# Which dishes: a DPP, in which pasta and curry are alike. Together: a determinantal PGC.
L = [[4, 3, 0], [3, 4, 1], [0, 1, 1]]
menu = pgcc.det_pgc(L, dishes)
model, choice = pgcc.compile(menu), pgcc.compile(pgcc.dpp(L=L))


def compare(what: str, a: str, b: str) -> None:
    both, alone = model.prob({a: 1, b: 1}), model.prob({a: 1}) * model.prob({b: 1})
    print(f"{what}: {both:.3f} together, {alone:.3f} if they were independent")


compare("inside a dish", "noodles", "tomato")
compare("across dishes", "noodles", "rice")

# Inside dish i: Pr(X, Y) = Pr_L(i) · Pr_i(X, Y). Across dishes: Pr(X, Y) ≤ Pr(X) · Pr(Y). In exact numbers.
holds = []
for i, dish in enumerate(dishes):
    alone, dish_chosen = pgcc.compile(dish), choice.prob({f"x{i + 1}": 1}, exact=True)
    for pair in combinations(dish.variables, 2):
        both = dict.fromkeys(pair, 1)
        holds.append(model.prob(both, exact=True) == dish_chosen * alone.prob(both, exact=True))
for one, other in combinations(dishes, 2):
    for a in one.variables:
        for b in other.variables:
            apart = model.prob({a: 1}, exact=True) * model.prob({b: 1}, exact=True)
            holds.append(model.prob({a: 1, b: 1}, exact=True) <= apart)
print("the two formulas of the paper hold:", all(holds))

# A guest brings salt with probability 1/2, whatever is cooked; every ingredient is forgotten with probability 1/10.
table = pgcc.superpose([menu, pgcc.parse("salt/2 + 1/2")]).thin(Fraction(9, 10))

# Nobody wants more than two of these.
mild = pgcc.compile(table.observe(size=(0, 2), over=["cumin", "salt", "oil"]))
print(f"at most two spices: Pr(salt) = {mild.prob({'salt': 1}):.4f}")

# What is left in the cupboard is the complement. Two of four desserts are chosen blindly.
left = table.complement()
print(f"noodles stay in the cupboard: {pgcc.compile(left).prob({'noodles': 1}):.4f}")
whole = pgcc.product([table, pgcc.subsets("cake fruit ice pie", 2)]).normalize()
print("total of the whole menu:", pgcc.compile(whole, normalize=False).prob({}, exact=True))
