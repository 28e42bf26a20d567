// The circuit, drawn as pgcc evaluates it: every sum, product and determinant with its value for the current query, and
// shaded by how much of the probability goes through it. Of a large circuit the top, or the neighbourhood of a node.

import { DET, LEAF, SUM, TIMES } from "./decode.js";
import { logarithm, quotient } from "./scaled.js";
import { draw, onKey, scaledText, shortNumber } from "./text.js";

const RADIUS = 14, GAP = 18, STEP = 82, MARGIN = 34, MOST_CHILDREN = 7, MOST_PARENTS = 6, LONGEST = 16;
const SMALLEST = 0.6, LARGEST = 4; // scales: of what is drawn at first, and of what can be had

export class CircuitView {
  /** evaluator: one that has answered a query, whose values are shown. Nodes are the numbers of its values. */
  constructor(parts, evaluator, names, sizes) {
    Object.assign(this, parts); // canvas, text, detail, top, smaller, larger, fit
    Object.assign(this, { evaluator, program: evaluator.program, names, sizes });
    this.svg = draw("svg", {
      role: "group", "aria-label": "Circuit: arrow keys follow its edges, Enter shows the neighbourhood of a node, plus and minus zoom",
      onkeydown: (event) => this.key(event),
      onpointerdown: () => (this.moved = 0),
      onpointermove: (event) => this.drag(event),
    });
    this.canvas.replaceChildren(this.svg);
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // it scrolls
      event.preventDefault();
      this.zoom(0.9985 ** event.deltaY);
    }, { passive: false });
    this.top.addEventListener("click", () => this.show(this.program.root));
    for (const [button, factor] of [[this.smaller, 1 / 1.3], [this.larger, 1.3], [this.fit, 0]]) button.addEventListener("click", () => this.zoom(factor));
    this.measure();
    addEventListener("resize", () => {
      const before = this.wide;
      this.measure();
      if (this.wide !== before) this.show(this.focus);
    });
    this.show(this.program.root);
  }

  /** The width is measured once: to ask for it after every change would have the page laid out every time. */
  measure() {
    this.wide = this.canvas.clientWidth || 800;
  }

  // -- what is drawn --------------------------------------------------------------------------------------------

  /** [{parent, child, weight}] of the edges below a node. */
  edges(parent) {
    const { op, firstWeight, weight, weightExponent } = this.program, first = firstWeight[parent], slots = this.program.slots(parent);
    const found = Array.from(slots, (child, k) => ({ parent, child, weight: op[parent] === SUM ? { m: weight[first + k], e: weightExponent[first + k] } : null }));
    return op[parent] === DET ? found.filter(({ child }, k) => k < slots.length / 2 || !this.isComplement(child)) : found;
  }

  parents(node) {
    const found = [], { length } = this.program;
    for (let i = node + 1; i < length && found.length < MOST_PARENTS; i++) if (this.program.slots(i).includes(node)) found.push(i);
    return found;
  }

  isComplement(node) {
    const { op, start, args, leaf, leafVariable } = this.program, l = args[start[node]];
    return op[node] === LEAF && leafVariable[l] >= 0 && leaf[3 * l + 1] === 0;
  }

  /** A node's parents, and what is below it, level by level, up to so many nodes: of a sum its largest terms. */
  around(focus) {
    const most = this.wide < 560 ? 22 : 48, nodes = new Set([...this.above, focus]), below = [focus], hidden = new Map();
    const edges = this.above.flatMap((parent) => this.edges(parent).filter(({ child }) => child === focus).slice(0, 1));
    const size = ({ child, weight }) => {
      const { m, e } = this.evaluator.values.at(child);
      return logarithm({ m: Math.abs(m * weight.m), e: e + weight.e });
    };
    for (const parent of below) {
      const found = this.edges(parent);
      if (found.length > MOST_CHILDREN && found[0].weight) found.sort((a, b) => size(b) - size(a));
      let shown = 0;
      for (const edge of found) {
        if (!nodes.has(edge.child) && (shown === MOST_CHILDREN || nodes.size >= most)) {
          hidden.set(parent, (hidden.get(parent) ?? 0) + 1);
          continue;
        }
        edges.push(edge);
        if (nodes.has(edge.child)) continue;
        shown++;
        nodes.add(edge.child);
        below.push(edge.child);
      }
    }
    return { nodes: [...nodes], edges, hidden };
  }

  /** [the sign in the drawing, the same in words] */
  label(node) {
    const { op, start, args, leaf, leafExponent, leafVariable, dets } = this.program, l = args[start[node]];
    const count = this.program.slots(node).length, number = (at) => ({ m: leaf[at], e: leafExponent[at] });
    if (op[node] === TIMES) return ["×", `product of ${count} factors`];
    if (op[node] === SUM) return ["+", `sum of ${count} terms`];
    if (op[node] === DET) return ["det", `determinant of ${dets[l].rank} rows and ${dets[l].children} children${dets[l].size === null ? "" : `, of which ${dets[l].size} are in`}`];
    if (leafVariable[l] < 0) return [scaledText(number(3 * l), 3), `the number ${scaledText(number(3 * l))}`];
    const name = this.names[leafVariable[l]], a = number(3 * l), b = number(3 * l + 1);
    if (a.m === 0 && b.m === 1) return [name, `${name} is in`];
    if (b.m === 0 && a.m === 1) return [`not ${name}`, `${name} is out`];
    return [name, `${name}: ${scaledText(b)} if it is in, ${scaledText(a)} if it is out`];
  }

  /** Rows by longest paths, each in the order of Python (`places.py`); from the last one up, near to the nodes below. */
  place(marks, edges) {
    const rows = [], { place } = this.program;
    for (const [node, mark] of [...marks].sort(([a], [b]) => b - a)) { // parents have larger numbers
      (rows[mark.depth] ??= []).push(mark);
      for (const { parent, child } of edges) if (parent === node) marks.get(child).depth = Math.max(marks.get(child).depth, mark.depth + 1);
    }
    for (const row of rows.toReversed()) {
      let end = -Infinity, off = 0;
      for (const mark of row.sort((a, b) => place[a.node] - place[b.node])) {
        const below = edges.filter(({ parent }) => parent === mark.node).map(({ child }) => marks.get(child).x);
        const wanted = below.length ? below.reduce((sum, x) => sum + x, 0) / below.length : Math.max(0, end);
        mark.x = Math.max(wanted, end + mark.width / 2);
        off += (mark.x - wanted) / row.length;
        end = mark.x + mark.width / 2 + GAP;
      }
      for (const mark of row) mark.x -= off;
    }
    const all = [...marks.values()], left = Math.min(...all.map(({ x, width }) => x - width / 2));
    for (const mark of all) [mark.x, mark.y] = [mark.x - left + MARGIN, mark.depth * STEP + MARGIN];
    this.width = Math.max(...all.map(({ x, width }) => x + width / 2)) + MARGIN;
    this.height = (rows.length - 1) * STEP + 2 * MARGIN;
  }

  // -- the drawing ----------------------------------------------------------------------------------------------

  show(focus) {
    if (focus !== this.focus) this.above = this.parents(focus);
    this.focus = focus;
    const { nodes, edges, hidden } = this.around(focus), { nodes: all, edges: links } = this.sizes;
    this.marks = new Map(nodes.map((node) => [node, this.mark(node)]));
    this.drawn = edges;
    this.place(this.marks, edges);
    this.svg.replaceChildren(...edges.map((edge) => this.wire(edge)), ...nodes.map((node) => this.element(this.marks.get(node), hidden.get(node))));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.top.hidden = focus === this.program.root;
    this.isPartial = hidden.size > 0;
    const part = focus !== this.program.root ? "around a node" : this.isPartial ? "the top" : "";
    this.text.textContent = `${all.toLocaleString("en")} nodes, ${links.toLocaleString("en")} edges${part ? `: ${part}; click a node to go there` : ""}`;
    this.detail.textContent = "";
    this.high = Math.max(200, Math.min(0.46 * innerHeight, 520, 1.15 * this.height + 40));
    this.canvas.style.height = `${this.high}px`;
    this.scale = 1;
    this.zoom(0);
    this.zoom(Math.max(1, SMALLEST / this.scale)); // not smaller than can be read
    this.update();
  }

  mark(node) {
    const [sign, words] = this.label(node), short = sign.length > LONGEST ? `${sign.slice(0, LONGEST - 1)}…` : sign, isLeaf = this.program.op[node] === LEAF;
    return { node, words, short, isLeaf, depth: 0, width: isLeaf || short.length > 1 ? Math.max(2 * RADIUS, 7 * short.length + 14) : 2 * RADIUS };
  }

  wire({ parent, child, weight }) {
    const { x: x0, y: above } = this.marks.get(parent), { x: x1, y: below } = this.marks.get(child);
    const y0 = above + RADIUS + 14, y1 = below - RADIUS, middle = (y0 + y1) / 2, group = draw("g", {});
    group.append(draw("path", { class: weight?.m < 0 ? "wire negative" : "wire", d: `M${x0} ${y0}C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}` }));
    if (weight && this.drawn.length <= 90 && !(weight.m === 1 && weight.e === 0)) {
      group.append(draw("text", { class: "weight", x: x0 + (x1 - x0) * 0.9, y: y0 + (y1 - y0) * 0.75 + 3 }, scaledText(weight, 3)));
    }
    return group;
  }

  element(mark, hidden) {
    const { node, x, y, width, words, short, isLeaf } = mark, isFocus = node === this.focus;
    const box = { x: x - width / 2, y: y - RADIUS, width, height: 2 * RADIUS, rx: isLeaf ? 7 : RADIUS };
    const tell = () => (this.detail.textContent = mark.group.getAttribute("aria-label"));
    mark.flow = draw("rect", { class: "flow", ...box, opacity: 0 });
    mark.value = draw("text", { class: "value", x, y: y + RADIUS + 11 });
    mark.group = draw("g", {
      class: isFocus ? "node focus" : "node", tabindex: isFocus ? 0 : -1, role: "button", "data-node": String(node),
      onclick: () => this.moved < 5 && this.go(node), onfocus: tell, onpointerenter: tell,
    }, draw("title", {}, words), draw("rect", { class: "shape", ...box }), mark.flow, draw("text", { class: isLeaf ? "sign leaf" : "sign", x, y: y + 4.5 }, short), mark.value);
    if (hidden) mark.group.append(draw("text", { class: "more", x: x + width / 2 + 2, y: y - RADIUS + 4 }, `+${hidden}`, draw("title", {}, `${hidden} more below: click the node`)));
    return mark.group;
  }

  /** How much of the probability goes through a node: value · adjoint / root. */
  share(node) {
    const { values, adjoints, needed, program } = this.evaluator, root = values.at(program.root);
    if (!(Math.abs(root.m) > root.x) || !needed[node]) return null;
    const v = values.at(node), a = adjoints.at(node);
    return quotient({ m: v.m * a.m, e: v.e + a.e, x: 0 }, { ...root, x: 0 }).value;
  }

  /** Show the query that the evaluator has answered last; in part, it may be another part. */
  follow() {
    if (this.isPartial && !this.around(this.focus).nodes.every((node) => this.marks.has(node))) this.show(this.focus);
    else this.update();
  }

  update() {
    for (const { node, group, flow, value: text, words } of this.marks.values()) {
      const value = this.evaluator.values.at(node), share = this.share(node), size = scaledText(value, 3);
      text.textContent = value.m !== 0 && Math.abs(value.m) <= value.x * 1e6 ? `≈? ${size}` : size;
      flow.setAttribute("opacity", share === null ? 0 : 0.06 + 0.5 * Math.min(1, Math.abs(share)));
      group.setAttribute("aria-label", `${words}: value ${text.textContent}${share === null ? "" : `, share ${shortNumber(share, 3)}`}`);
    }
  }

  // -- moving about ---------------------------------------------------------------------------------------------

  go(node) {
    this.show(node);
    this.marks.get(node).group.focus({ preventScroll: true });
  }

  drag(event) {
    if (!event.buttons || event.pointerType === "touch") return; // fingers scroll
    this.moved += Math.hypot(event.movementX, event.movementY);
    this.canvas.scrollBy(-event.movementX, -event.movementY);
  }

  key(event) {
    const at = [...this.marks.values()].find(({ group }) => group === event.target);
    if (at === undefined || event.ctrlKey || event.metaKey) return;
    const row = [...this.marks.values()].filter(({ y }) => y === at.y).sort((a, b) => a.x - b.x);
    const move = (to) => {
      if (to === undefined) return;
      at.group.setAttribute("tabindex", -1);
      to.group.setAttribute("tabindex", 0);
      to.group.focus();
    };
    onKey(event, {
      ArrowDown: () => move(this.marks.get(this.drawn.find(({ parent }) => parent === at.node)?.child)),
      ArrowUp: () => move(this.marks.get(this.drawn.find(({ child }) => child === at.node)?.parent)),
      ArrowRight: () => move(row[row.indexOf(at) + 1]),
      ArrowLeft: () => move(row[row.indexOf(at) - 1]),
      Enter: () => this.go(at.node),
      " ": () => this.go(at.node),
      "+": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.zoom(0),
      Home: () => this.go(this.program.root),
    });
  }

  /** So many times as large, around the focus; 0: the whole drawing. */
  zoom(factor) {
    const whole = Math.min(this.wide / this.width, this.high / this.height, 1.2), { x, y } = this.marks.get(this.focus);
    this.scale = factor === 0 ? whole : Math.min(LARGEST, Math.max(whole, this.scale * factor));
    this.svg.style.width = `${this.width * this.scale}px`;
    this.svg.style.height = `${this.height * this.scale}px`;
    this.canvas.scrollTo(x * this.scale - this.wide / 2, y * this.scale - this.high / 3);
  }
}
