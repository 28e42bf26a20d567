// The graph of a random spanning tree: every edge as wide as its probability, to be put in or out by a click.

import { IN, OPEN, OUT } from "./evaluator.js";
import { draw, marginalText, onKey } from "./text.js";
import { STATES } from "./variables.js";

const EDGE = 34;

export class GraphView {
  constructor(canvas, graph, names, change) {
    Object.assign(this, { canvas, graph, names, change });
    const ends = graph.tail.map((tail, edge) => [tail, graph.head[edge]]);
    const [x, y] = canvas.clientWidth < 560 ? [graph.y, graph.x] : [graph.x, graph.y]; // on a narrow page it stands upright
    const width = Math.max(...x), height = Math.max(...y);
    const size = Math.max(420, Math.min(900, 1.1 * (canvas.clientWidth || 800)));
    this.at = (node) => [EDGE + x[node] * size, EDGE + y[node] * size];
    const radius = Math.max(8, Math.min(15, (0.14 * size) / Math.sqrt(graph.nodes.length)));
    this.svg = draw("svg", {
      viewBox: `0 0 ${width * size + 2 * EDGE} ${Math.max(height * size, 120) + 2 * EDGE}`, role: "group",
      "aria-label": "Graph: arrow keys go from edge to edge, Enter changes one",
    });
    this.radius = radius;
    this.edges = ends.map((_, edge) => this.edge(edge, ends));
    this.svg.append(...this.edges.map(({ group }) => group));
    graph.nodes.forEach((name, node) => this.svg.append(...this.vertex(name, node)));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    canvas.replaceChildren(this.svg);
  }

  vertex(name, node) {
    const [x, y] = this.at(node), short = name.length <= 3;
    const text = draw("text", { class: "vertex-text", x, y: short ? y + 4 : y - this.radius - 5, style: short ? null : "paint-order: stroke; stroke: var(--soft); stroke-width: 4px" }, name.length > 18 ? `${name.slice(0, 17)}…` : name);
    return [draw("circle", { class: "vertex", cx: x, cy: y, r: short ? this.radius : this.radius * 0.6 }), text];
  }

  /** Parallel edges are bent apart. */
  edge(edge, ends) {
    const [tail, head] = ends[edge], twins = ends.flatMap(([a, b], i) => ((a === tail && b === head) || (a === head && b === tail) ? [i] : []));
    const bend = (twins.indexOf(edge) - (twins.length - 1) / 2) * 36 * (tail < head ? 1 : -1);
    const [x0, y0] = this.at(tail), [x1, y1] = this.at(head), length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const cx = (x0 + x1) / 2 - (bend * (y1 - y0)) / length, cy = (y0 + y1) / 2 + (bend * (x1 - x0)) / length;
    const d = `M${x0} ${y0}Q${cx} ${cy} ${x1} ${y1}`;
    const seen = draw("path", { class: "seen", d }), title = draw("title");
    const group = draw("g", { class: "edge", role: "button", tabindex: edge === 0 ? 0 : -1, "data-variable": this.graph.variable[edge] }, title, draw("path", { class: "hit", d }), seen);
    if (this.graph.directed) group.append(draw("path", { class: "arrow", d: arrowAt(x0, y0, cx, cy, x1, y1), style: "fill: var(--quiet); stroke: none" }));
    group.addEventListener("click", () => this.change(this.graph.variable[edge]));
    return { group, seen, title };
  }

  key(event) {
    const at = this.edges.findIndex(({ group }) => group === event.target), count = this.edges.length;
    if (at < 0 || event.ctrlKey || event.metaKey) return;
    const variable = this.graph.variable[at];
    const go = (to) => {
      this.edges[at].group.setAttribute("tabindex", -1);
      this.edges[to].group.setAttribute("tabindex", 0);
      this.edges[to].group.focus();
    };
    onKey(event, {
      ArrowRight: () => go((at + 1) % count), ArrowDown: () => go((at + 1) % count),
      ArrowLeft: () => go((at + count - 1) % count), ArrowUp: () => go((at + count - 1) % count),
      Enter: () => this.change(variable), " ": () => this.change(variable),
      1: () => this.change(variable, IN), 0: () => this.change(variable, OUT), Backspace: () => this.change(variable, OPEN),
    });
  }

  update(answer) {
    this.answer = answer;
    this.edges.forEach(({ group, seen, title }, edge) => {
      const variable = this.graph.variable[edge], p = answer.marginal[variable], code = answer.codes[variable];
      const { text } = marginalText(p, answer.error[variable]);
      seen.setAttribute("stroke-width", code === OUT ? 1.5 : 1 + 0.7 * this.radius * (Number.isNaN(p) ? 0 : Math.min(1, Math.max(0, p))));
      seen.setAttribute("stroke-opacity", code === OPEN ? 0.25 + 0.65 * (Number.isNaN(p) ? 0 : p) : 0.95);
      group.dataset.state = STATES[code];
      title.textContent = `${this.names[variable]}: ${code === OPEN ? text : STATES[code]}`;
      group.setAttribute("aria-label", `edge ${this.names[variable]}: ${code === OPEN ? `open, probability ${text}` : `observed ${STATES[code]}`}`);
    });
  }
}

/** A triangle on the curve, towards its end. */
function arrowAt(x0, y0, cx, cy, x1, y1) {
  const t = 0.62, at = (a, c, b) => (1 - t) ** 2 * a + 2 * t * (1 - t) * c + t * t * b;
  const x = at(x0, cx, x1), y = at(y0, cy, y1), dx = (1 - t) * (cx - x0) + t * (x1 - cx), dy = (1 - t) * (cy - y0) + t * (y1 - cy);
  const length = Math.hypot(dx, dy) || 1, ux = dx / length, uy = dy / length;
  return `M${x + 9 * ux} ${y + 9 * uy}L${x - 5 * ux - 6 * uy} ${y - 5 * uy + 6 * ux}L${x - 5 * ux + 6 * uy} ${y - 5 * uy - 6 * ux}Z`;
}
