// Evaluate programs with the evaluator of the explorer's pages: from a file of queries to JSON on standard output.
// Arguments: the folder of the modules, the file.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, file] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${folder}/${name}.js`));
const { decodeProgram } = await load("decode"), { Evaluator } = await load("evaluator"), { momentsOf, sizeSteps } = await load("series");

const answers = [];
for (const { about, packed, rows } of JSON.parse(readFileSync(file, "utf8"))) {
  const evaluator = new Evaluator(await decodeProgram(packed, about));
  for (const row of rows) {
    const codes = Uint8Array.from(row), value = evaluator.evaluate(codes), joints = evaluator.differentiate();
    const found = { value, joints: Array.from({ length: row.length + evaluator.outAt.size }, (_, i) => joints.at(i)) };
    if (Math.abs(value.m) > 1e3 * value.x) {
      const steps = sizeSteps(evaluator, codes);
      let step = steps.next();
      while (!step.done) step = steps.next();
      found.sizes = Array.from(step.value.probability);
      found.error = step.value.error;
    Object.assign(found, momentsOf(step.value));
    }
    answers.push(found);
  }
}
console.log(JSON.stringify(answers));
