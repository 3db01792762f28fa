// The film of an episode: live while it is played, and then under the visitor's finger.

const $ = (id) => document.getElementById(id);
const GAP = 42; // ms between frames: the world's own speed is 24 steps a second

export class Film {
  constructor() {
    this.scrub = $("scrub");
    this.reset();
    this.scrub.addEventListener("input", () => {
      this.playing = false;
      this.show(Number(this.scrub.value));
    });
    $("replay").addEventListener("click", () => (this.playing ? this.pause() : this.replay()));
    requestAnimationFrame((now) => this.tick(now));
  }

  reset(image) {
    this.steps = [];
    this.at = 0;
    this.last = 0;
    this.live = false;
    this.playing = false;
    this.reached = null;
    this.expertReached = null;
    this.onEnd = null;
    this.scrub.disabled = $("replay").disabled = true;
    this.scrub.value = 0;
    if (image) $("agent").src = image;
    $("seen").hidden = $("expert").hidden = true;
    $("question").hidden = false;
    for (const id of ["agent-figure", "expert-figure"]) $(id).classList.remove("done");
    this.drawRibbon();
  }

  start(event) {
    this.reset(event.agent);
    this.steps = [{ ...event, success: event.done, expert: event.agent, value: null }];
    this.live = this.playing = true;
    $("question").hidden = true;
    $("expert").hidden = false;
    this.show(0);
  }

  add(event) {
    const before = this.steps.at(-1);
    this.steps.push({ ...event, expert: event.expert ?? before.expert });
    this.drawRibbon();
  }

  end(event) {
    this.live = false;
    this.reached = event.reached_at;
    this.expertReached = event.expert_reached_at;
    this.drawRibbon();
    this.enable();
  }

  // Whatever has come so far can be looked at, also when the episode broke off.
  enable() {
    this.live = false;
    const any = this.steps.length > 1;
    this.scrub.disabled = $("replay").disabled = !any;
    if (any) this.scrub.max = this.steps.length - 1;
  }

  replay() {
    if (this.at >= this.steps.length - 1) this.at = 0;
    this.playing = true;
    this.sync();
  }

  pause() {
    this.playing = false;
    this.sync();
  }

  tick(now) {
    if (this.playing && now - this.last >= GAP) {
      if (this.at < this.steps.length - 1) {
        this.last = now;
        this.show(this.at + 1);
      } else if (!this.live) {
        this.playing = false;
        this.sync();
        this.onEnd?.();
      }
    }
    requestAnimationFrame((next) => this.tick(next));
  }

  show(step) {
    const frame = this.steps[step];
    if (!frame) return;
    this.at = step;
    $("agent").src = frame.agent;
    $("seen").src = frame.seen;
    $("seen").hidden = false;
    $("expert").src = frame.expert;
    $("agent-figure").classList.toggle("done", Boolean(frame.success));
    $("expert-figure").classList.toggle("done", Boolean(frame.expert_success));
    this.scrub.value = step;
    this.scrub.setAttribute("aria-valuetext", `step ${step}${frame.success ? ", the goal is reached" : ""}`);
    this.drawHand();
    this.sync();
  }

  sync() {
    const icon = this.playing ? "pause" : "play";
    $("replay").querySelector("use").setAttribute("href", `#${icon}`);
    $("replay").setAttribute("aria-label", this.playing ? "Pause" : "Play again");
  }

  // Where the goal was reached, and what the critic made of each step.
  drawRibbon() {
    const ribbon = $("ribbon");
    const last = Math.max(75, this.steps.length - 1);
    ribbon.setAttribute("viewBox", `0 0 ${last} 24`);
    const bars = this.steps.map((frame, step) => (frame.success && step ? shape("rect", { x: step - 1, y: 0, width: 1.02, height: 24, class: "reached" }) : null));
    const values = this.steps.filter((frame) => frame.value !== null && frame.value !== undefined);
    const line = values.map((frame) => `${frame.step},${22 - 20 * Math.min(1, Math.max(0, frame.value))}`).join(" ");
    const parts = [...bars.filter(Boolean), shape("polyline", { points: line, class: "value" })];
    if (this.expertReached !== null) {
      parts.push(shape("line", { x1: this.expertReached, x2: this.expertReached, y1: 0, y2: 24, class: "expert" }));
    }
    this.hand = shape("line", { y1: 0, y2: 24, class: "hand" });
    ribbon.replaceChildren(...parts, this.hand);
    const told = this.reached === null ? "The goal was not reached" : `The goal was reached at step ${this.reached}`;
    ribbon.setAttribute("aria-label", this.steps.length ? told : "Nothing was played yet");
    this.drawHand();
  }

  drawHand() {
    this.hand.setAttribute("x1", this.at);
    this.hand.setAttribute("x2", this.at);
  }
}

function shape(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
