// The page: what is observed, one query for every change, and the views that show its answer.

import { CircuitView } from "./circuit.js";
import { decodeProgram } from "./decode.js";
import { Evaluator, IN, OPEN, OUT, observed } from "./evaluator.js";
import { GraphView } from "./graph.js";
import { Jobs } from "./jobs.js";
import { modeSteps } from "./mode.js";
import { randomNumbers, sampleSteps } from "./sampler.js";
import { logarithm } from "./scaled.js";
import { sizeSteps, sizeWork } from "./series.js";
import { modeParts, sampleParts } from "./sets.js";
import { sizesPicture } from "./sizes.js";
import { Stated } from "./states.js";
import { counted, make, marginalText, note, scaledText } from "./text.js";
import { whyNoTree } from "./trees.js";
import { STATES, VariablesView } from "./variables.js";

const CERTAIN = 1e-6; // the relative error from which on the page says that it is not certain
const MOST_WORK = 4e9; // multiplications for the sizes that are begun without being asked for
const MOST_CHIPS = 60;

const NEXT = { [OPEN]: IN, [IN]: OUT, [OUT]: OPEN }; // what a click makes of each

const part = (id) => document.getElementById(id);

class App {
  constructor(about, program) {
    this.about = about;
    this.names = about.variables;
    this.stated = about.states.map((one) => new Stated(one, this.names.length));
    const ofStates = new Set(this.stated.flatMap(({ columns }) => columns));
    this.plain = [...this.names.keys()].filter((i) => !ofStates.has(i));
    this.namesOf = (row) => [...this.plain.filter((i) => row[i] === IN).map((i) => this.names[i]), ...this.stated.flatMap((one) => one.told(row).map(({ text }) => text))];
    this.evaluator = new Evaluator(program);
    this.helper = new Evaluator(program); // for work in the background
    this.jobs = new Jobs();
    this.codes = new Uint8Array(this.names.length).fill(OPEN);
    this.past = [];
    this.prior = this.evaluator.query(this.codes).marginal;
    this.variables = new VariablesView(part("list"), about, this.stated, (...how) => this.change(...how));
    this.circuit = new CircuitView({
      canvas: part("circuit"), text: part("circuit-text"), detail: part("circuit-node"), top: part("circuit-top"),
      smaller: part("circuit-out"), larger: part("circuit-in"), fit: part("circuit-fit"),
    }, this.evaluator, this.names, about.sizes);
    if (about.graph) {
      part("graph-card").hidden = false;
      this.graph = new GraphView(part("graph"), about.graph, this.names, (variable, code) => this.change(variable, code));
    }
    this.listen();
    this.ask();
  }

  listen() {
    part("search").addEventListener("input", (event) => this.variables.arrange({ wanted: event.target.value.trim() }));
    part("sort").addEventListener("change", (event) => this.variables.arrange({ sort: event.target.value }));
    part("undo").addEventListener("click", () => this.undo());
    part("clear").addEventListener("click", () => this.replace(this.codes.slice().fill(OPEN)));
    part("find-mode").addEventListener("click", () => this.findMode());
    part("draw").addEventListener("click", () => this.drawSamples(Number(part("sample-count").value)));
    document.addEventListener("keydown", (event) => {
      const typing = event.target.matches?.("input, select");
      if (event.key === "/" && !typing) {
        event.preventDefault();
        part("search").focus();
      } else if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) {
        event.preventDefault();
        this.undo();
      }
    });
  }

  // -- what is observed -----------------------------------------------------------------------------------------

  /** Put a variable, or a state of one, in or out, or leave it open; without a word which, the next of these. */
  change(variable, code = NEXT[this.codes[variable]], state = -1) {
    const stated = this.stated[variable - this.names.length], { block } = this.evaluator.program;
    if (stated) this.replace(stated.chosen(this.codes, state, code));
    else if (this.codes[variable] !== code) this.replace(observed(this.codes, variable, code, block));
  }

  replace(codes) {
    this.past.push(this.codes);
    this.codes = codes;
    this.ask();
  }

  undo() {
    if (this.past.length === 0) return;
    this.codes = this.past.pop();
    this.ask();
  }

  // -- the answer -----------------------------------------------------------------------------------------------

  /** One query, and everything that follows from it. */
  ask() {
    this.answer = { ...this.evaluator.query(this.codes), codes: this.codes, prior: this.prior, drawn: null };
    this.jobs.stop("mode");
    this.jobs.stop("samples");
    this.reason = this.about.graph?.trees ? whyNoTree(this.about.graph, this.codes) : null;
    this.possible = this.reason === null && Math.abs(this.answer.value.m) > this.answer.value.x;
    if (!this.possible) this.answer.marginal = this.answer.marginal.map((p, i) => (this.codes[i] === IN || this.codes[i] === OUT ? p : NaN));
    this.showEvidence();
    this.variables.update(this.answer);
    this.graph?.update(this.answer);
    this.circuit.follow();
    this.askSizes();
    part("mode").replaceChildren(note("The set with the largest probability that agrees with what is observed."));
    part("samples").replaceChildren(note("Sets drawn from the distribution, given what is observed."));
    for (const id of ["find-mode", "draw"]) part(id).disabled = !this.possible;
  }

  showEvidence() {
    const plain = this.plain.filter((i) => this.codes[i] !== OPEN).map((i) => ({ i, name: this.names[i], state: STATES[this.codes[i]], text: `${this.names[i]} ${STATES[this.codes[i]]}`, python: this.codes[i] }));
    const known = [...plain, ...this.stated.flatMap((one, k) => one.told(this.codes, this.names.length + k))];
    part("evidence-title").textContent = known.length ? `Probability of the evidence (${counted(known.length, "variable")})` : "Nothing is observed yet";
    const { value, relative, evidence } = this.answer, output = part("probability");
    const log = logarithm(value) - logarithm(this.evaluator.total);
    if (this.isImpossible()) output.replaceChildren("0", make("small", {}, " impossible"));
    else if (!(Math.abs(value.m) > value.x)) output.replaceChildren("≈? 0");
    else if (known.length === 0) output.replaceChildren("1");
    else {
      const text = evidence.value > 1e-3 ? marginalText(Math.min(1, evidence.value), evidence.error, 6).text.replace(/(\.\d*?)0+$/, "$1") : scaledText(this.share(value));
      output.replaceChildren(relative > CERTAIN && !text.startsWith("≈") ? `≈? ${text}` : text, make("small", {}, `  log ${Math.min(0, log).toFixed(3)}`));
    }
    const chips = known.slice(0, MOST_CHIPS).map(({ i, text, state }) => make("li", {}, make("button", {
      type: "button", class: state, "aria-label": `${i < this.names.length ? text.replace(/ (in|out)$/, " is $1") : text}: leave it open`, onclick: () => this.change(i, OPEN),
    }, `${text} ×`)));
    if (known.length > MOST_CHIPS) chips.push(make("li", { class: "quiet" }, `and ${known.length - MOST_CHIPS} more`));
    part("chips").replaceChildren(...chips);
    part("undo").disabled = this.past.length === 0;
    part("clear").disabled = known.length === 0;
    this.showNotice(known);
  }

  /** Where the page is not certain, it says so, and how to ask pgcc. */
  showNotice(known) {
    const { value, relative, marginal, error } = this.answer, notice = part("notice");
    const doubtful = marginal.reduce((count, p, i) => count + (error[i] > CERTAIN * Math.abs(p) && error[i] > 1e-9 ? 1 : 0), 0);
    const negative = marginal.some((p, i) => p + error[i] < -1e-12 || p - error[i] > 1 + 1e-12);
    const some = known.slice(0, 12).map(({ name, python }) => `${JSON.stringify(name)}: ${python}`).join(", ");
    const ask = () => make("code", {}, `model.marginals({${some}${known.length > 12 ? ", …" : ""}})`);
    let said = [];
    if (this.isImpossible()) said = [`This evidence is impossible: ${this.reason ?? "its probability is 0"}. Undo, or leave one of the observed variables open.`];
    else if (!this.possible) said = ["This evidence is impossible, or so improbable that double precision does not show it. To be certain, ask pgcc: ", ask()];
    else if (negative) said = ["A probability here is below 0 or above 1: the polynomial is no distribution. pgcc.check(circuit) says why."];
    else if (relative > CERTAIN || doubtful) said = [`Not certain here: digits cancel, and ${relative > CERTAIN ? "the probability of the evidence" : counted(doubtful, "variable")} may be off by more than one in a million (≈?). pgcc itself is certain: `, ask()];
    notice.hidden = said.length === 0;
    notice.replaceChildren(...said);
  }

  /** Whether it is certain that the evidence has probability 0. */
  isImpossible() {
    return this.reason !== null || (this.answer.value.m === 0 && this.answer.value.x === 0);
  }

  /** A value of the program as a probability. */
  share(value) {
    const { total } = this.evaluator;
    return { m: value.m / total.m, e: value.e - total.e, x: 0 };
  }

  // -- what takes longer ----------------------------------------------------------------------------------------

  /** Do it a step at a time, say so meanwhile, and then show what was found, which programs find under its kind. */
  start(kind, said, steps, show) {
    this[kind] = null;
    if (said) part(kind).replaceChildren(note(said));
    this.jobs.start(kind, steps, (found) => {
      this[kind] = found;
      show(found);
    });
  }

  askSizes() {
    const work = this.possible ? sizeWork(this.evaluator) : 0, button = make("button", { type: "button", onclick: () => this.findSizes() }, "Compute it");
    this.jobs.stop("sizes");
    part("size-text").textContent = "";
    if (!this.possible) part("sizes").replaceChildren(note("Nothing to show for impossible evidence."));
    else if (work < MOST_WORK) this.findSizes();
    else if (work === Infinity) part("sizes").replaceChildren(note("Too large for this page: ask model.cardinality(evidence)."));
    else part("sizes").replaceChildren(note(`This takes about ${Math.ceil(work / 4e8)} seconds here. `, button));
  }

  findSizes() {
    const codes = this.codes;
    this.start("sizes", null, () => sizeSteps(this.helper, codes), (found) => {
      const { picture, text } = sizesPicture(found, this.circuit.wide);
      part("sizes").replaceChildren(picture);
      part("size-text").textContent = text;
    });
  }

  findMode() {
    const codes = this.codes;
    this.start("mode", "Searching …", () => modeSteps(this.helper, codes, this.about), (found) => {
      const value = this.helper.evaluate(found?.row ?? codes);
      part("mode").replaceChildren(...modeParts(found, this.share(value), this.namesOf, this.about.proved, () => this.replace(found.row.slice())));
    });
  }

  drawSamples(count, seed = (Math.random() * 2 ** 32) >>> 0) {
    const codes = this.codes;
    this.start("samples", "Drawing …", () => sampleSteps(this.helper, codes, count, randomNumbers(seed)), (samples) => {
      part("samples").replaceChildren(...sampleParts(samples, this.namesOf));
      this.answer.drawn = this.names.map((_, i) => samples.reduce((sum, row) => sum + row[i], 0) / samples.length);
      this.variables.update(this.answer);
    });
  }
}

async function begin() {
  const { about, packed } = JSON.parse(part("data").textContent);
  const app = new App(about, await decodeProgram(packed, about));
  globalThis.explorer = app; // for programs that ask the page
  document.documentElement.dataset.ready = "";
}

begin().catch((error) => {
  const text = typeof DecompressionStream === "undefined" ? "this browser is too old: it cannot unpack the model (DecompressionStream)" : `${error}`;
  document.querySelector("main").replaceChildren(make("p", { class: "failure", role: "alert" }, `The page cannot show the model: ${text}.`));
});
