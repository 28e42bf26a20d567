// Long work in short slices, so that the page answers meanwhile: one job after another, each a generator.

const SLICE = 12; // milliseconds

export class Jobs {
  constructor() {
    this.waiting = [];
    this.running = null;
  }

  /** Run a job of a kind, in place of any other of that kind; `done` is given what it returns. */
  start(kind, steps, done) {
    this.stop(kind);
    this.waiting.push({ kind, steps, done });
    if (this.running === null) this.next();
  }

  /** Forget the job of a kind. */
  stop(kind) {
    this.waiting = this.waiting.filter((job) => job.kind !== kind);
    if (this.running?.kind === kind) this.running.stopped = true;
  }

  next() {
    this.running = this.waiting.shift() ?? null;
    if (this.running !== null) setTimeout(() => this.slice(this.running, null), 0);
  }

  slice(job) {
    if (job.stopped) return this.next();
    const end = performance.now() + SLICE;
    job.iterator ??= job.steps();
    let step;
    do step = job.iterator.next();
    while (!step.done && performance.now() < end);
    if (!step.done) return setTimeout(() => this.slice(job), 0);
    this.running = null;
    job.done(step.value);
    this.next();
  }
}
