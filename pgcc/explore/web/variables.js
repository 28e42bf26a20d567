// The list of variables: a bar for each, in groups, with search and sorting, by mouse, touch and keyboard.

import { IN, OPEN, OUT } from "./evaluator.js";
import { counted, make, marginalText, note, onKey } from "./text.js";

/** What codes are called. */
export const STATES = { [IN]: "in", [OUT]: "out", [OPEN]: "open" };

const MANY = 200; // variables from which on groups are closed at first

export class VariablesView {
  /** about: names and groups; change(variable, code): what to do when somebody decides (for the next code, without one). */
  constructor(root, about, change) {
    Object.assign(this, { root, names: about.variables, change, answer: null, wanted: "", sort: "order" });
    this.rows = new Map(); // of the variables that have been shown
    this.groups = about.groups.map(([title, members], i) => ({
      title, members, open: about.groups.length === 1 || this.names.length <= MANY || i === 0,
    }));
    this.build();
    root.addEventListener("keydown", (event) => this.key(event));
  }

  build() {
    this.root.replaceChildren();
    for (const group of this.groups) {
      group.list = make("ul", { "aria-label": group.title || "Variables" });
      if (this.groups.length > 1) {
        group.summary = make("span", { class: "quiet" });
        const toggle = () => this.arrange({ group });
        group.button = make("button", { type: "button", class: "group", onclick: toggle }, make("span", {}, group.title || "Variables"), group.summary);
        this.root.append(make("h3", { class: "hidden" }, group.title), group.button);
      }
      this.root.append(group.list);
    }
    this.arrange();
  }

  row(variable) {
    let row = this.rows.get(variable);
    if (row !== undefined) return row;
    const name = this.names[variable];
    const fill = make("span", { class: "fill" }), tick = make("span", { class: "tick", hidden: true });
    const dot = make("span", { class: "dot", hidden: true }), number = make("span", { class: "number" });
    const main = make("button", { type: "button", class: "bar", tabindex: -1, onclick: () => this.change(variable), onfocus: () => this.reach(variable) },
      make("span", { class: "name", title: name }, name),
      make("span", { class: "track" }, make("span", { class: "clip" }, fill), tick, dot), number);
    const toggle = (code) => make("button", {
      type: "button", class: STATES[code], tabindex: -1, "aria-pressed": "false", "aria-label": `put ${name} ${STATES[code]}`,
      onclick: () => this.change(variable, this.answer.codes[variable] === code ? OPEN : code),
    }, STATES[code]);
    const out = toggle(OUT), inside = toggle(IN);
    const item = make("li", { class: "row", "data-variable": variable }, main, make("span", { class: "toggle" }, out, inside));
    row = { item, main, fill, tick, dot, number, out, inside };
    this.rows.set(variable, row);
    return row;
  }

  /** Tab reaches the row that was used last. */
  reach(variable) {
    if (this.current !== undefined) this.rows.get(this.current)?.main.setAttribute("tabindex", -1);
    this.current = variable;
    this.rows.get(variable).main.setAttribute("tabindex", 0);
  }

  key(event) {
    const item = event.target.closest?.(".row");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const variable = Number(item.dataset.variable);
    const rows = [...this.root.querySelectorAll(".row")], at = rows.indexOf(item);
    const go = (to) => rows[Math.max(0, Math.min(rows.length - 1, to))].querySelector(".bar").focus();
    onKey(event, {
      ArrowDown: () => go(at + 1), ArrowUp: () => go(at - 1), Home: () => go(0), End: () => go(rows.length - 1),
      PageDown: () => go(at + 10), PageUp: () => go(at - 10),
      1: () => this.change(variable, IN), i: () => this.change(variable, IN),
      0: () => this.change(variable, OUT), o: () => this.change(variable, OUT),
      Backspace: () => this.change(variable, OPEN), Delete: () => this.change(variable, OPEN),
    });
  }

  /** Which rows are shown, in which order: those whose name has what is wanted; and a group is opened or closed. */
  arrange({ wanted = this.wanted, sort = this.sort, group: changed = null } = {}) {
    Object.assign(this, { wanted, sort });
    if (changed) changed.open = !changed.open;
    const { marginal, prior } = this.answer ?? {}, words = this.wanted.toLowerCase();
    const orders = {
      order: null,
      name: (a, b) => this.names[a].localeCompare(this.names[b], "en", { numeric: true }),
      high: (a, b) => marginal[b] - marginal[a] || a - b,
      low: (a, b) => marginal[a] - marginal[b] || a - b,
      change: (a, b) => Math.abs(marginal[b] - prior[b]) - Math.abs(marginal[a] - prior[a]) || a - b,
    };
    const compare = marginal ? orders[this.sort] : null;
    let shown = 0;
    for (const group of this.groups) {
      const found = words === "" ? group.members : group.members.filter((v) => this.names[v].toLowerCase().includes(words));
      const open = words === "" ? group.open : found.length > 0;
      if (group.button) {
        group.button.hidden = words !== "" && found.length === 0;
        group.button.setAttribute("aria-expanded", open);
      }
      group.list.hidden = !open;
      group.list.replaceChildren(...(open ? (compare ? found.slice().sort(compare) : found) : []).map((v) => this.row(v).item));
      shown += open ? found.length : 0;
    }
    this.empty?.remove();
    if (shown === 0 && words !== "") this.root.append((this.empty = note(`No name contains “${this.wanted}”.`)));
    if (this.current === undefined || !this.rows.get(this.current)?.item.isConnected) {
      const first = this.root.querySelector(".row");
      if (first) this.reach(Number(first.dataset.variable));
    }
    if (this.answer) this.paint();
  }

  /** Show an answer: marginals and errors, codes, the marginals without evidence, frequencies in samples or null. */
  update(answer) {
    this.answer = answer;
    if (this.sort === "order" || this.sort === "name") this.paint();
    else this.arrange(); // a row that has the focus keeps it: it is moved, not made anew
  }

  paint() {
    for (const [variable, row] of this.rows) if (row.item.isConnected) this.paintRow(variable, row);
    for (const group of this.groups) {
      if (!group.summary) continue;
      let sum = 0;
      for (const v of group.members) sum += this.answer.marginal[v];
      group.summary.textContent = Number.isNaN(sum) ? counted(group.members.length, "variable") : `${sum.toFixed(1)} of ${group.members.length} in`;
    }
  }

  paintRow(variable, row) {
    const { marginal, error, codes, prior, drawn } = this.answer, p = marginal[variable], code = codes[variable];
    const { text, doubt } = marginalText(p, error[variable]);
    row.fill.style.transform = `scaleX(${Number.isNaN(p) ? 0 : Math.min(1, Math.max(0, p))})`;
    row.number.textContent = text;
    row.item.dataset.state = STATES[code];
    row.item.toggleAttribute("data-doubt", doubt);
    row.inside.setAttribute("aria-pressed", code === IN);
    row.out.setAttribute("aria-pressed", code === OUT);
    const changed = Math.abs(prior[variable] - p) > 1e-3;
    row.tick.hidden = !changed;
    if (changed) row.tick.style.left = `${100 * prior[variable]}%`;
    row.dot.hidden = !drawn;
    if (drawn) row.dot.style.left = `${100 * drawn[variable]}%`;
    const state = code === OPEN ? `open, probability ${Number.isNaN(p) ? "unknown" : text}` : `observed ${STATES[code]}`;
    row.main.setAttribute("aria-label", `${this.names[variable]}: ${state}`);
  }
}
