// Long work in short slices, so that the page answers meanwhile: one job after another, each a generator.

const SLICE = 12; // milliseconds

export class Jobs {
  constructor() {
    this.jobs = new Map(); // by kind; the first one is under way
    this.timer = null;
  }

  /** Run a job of a kind, in place of any other of that kind; `done` is given what it returns. */
  start(kind, begin, done) {
    this.stop(kind);
    this.jobs.set(kind, { begin, done });
    this.timer ??= setTimeout(() => this.slice());
  }

  /** Forget the job of a kind. */
  stop(kind) {
    this.jobs.delete(kind);
  }

  slice() {
    this.timer = null;
    for (const [kind, job] of this.jobs) {
      const end = performance.now() + SLICE;
      job.steps ??= job.begin();
      let step;
      do step = job.steps.next();
      while (!step.done && performance.now() < end);
      this.timer = setTimeout(() => this.slice());
      if (!step.done) return;
      this.stop(kind);
      return job.done(step.value);
    }
  }
}
