// Spanning trees of a graph {nodes, tail, head, weight, variable}, one variable per edge.

import { IN, OUT } from "./evaluator.js";

/** A function that joins the parts of two nodes, and tells whether they were two (union-find). */
function joiner(graph) {
  const parent = graph.nodes.map((_, i) => i);
  const find = (i) => {
    while (parent[i] !== i) i = parent[i] = parent[parent[i]];
    return i;
  };
  return (edge) => {
    const tail = find(graph.tail[edge]), head = find(graph.head[edge]);
    parent[tail] = head;
    return tail !== head;
  };
}

/** Kruskal: edges that are in, then the others from the heaviest on, as long as they close no cycle. */
export function heaviestTree(graph, codes) {
  const row = codes.slice().fill(OUT), join = joiner(graph);
  const rank = (edge) => (codes[graph.variable[edge]] === IN ? Infinity : graph.weight[edge]);
  const order = [...graph.variable.keys()].filter((edge) => codes[graph.variable[edge]] !== OUT);
  for (const edge of order.sort((a, b) => rank(b) - rank(a) || a - b)) if (join(edge)) row[graph.variable[edge]] = IN;
  return row;
}

/** Why no spanning tree agrees with the evidence, in words; null if one does. */
export function whyNoTree(graph, codes) {
  const inside = joiner(graph), left = joiner(graph), edges = [...graph.variable.keys()], code = (edge) => codes[graph.variable[edge]];
  if (edges.some((edge) => code(edge) === IN && !inside(edge))) return "the edges that are in close a cycle";
  const joined = edges.filter((edge) => code(edge) !== OUT && left(edge)).length;
  return joined === graph.nodes.length - 1 ? null : "without the edges that are out, the graph falls apart";
}
