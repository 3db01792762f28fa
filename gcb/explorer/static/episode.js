// The player of an episode: live while the agent acts, then to be replayed and scrubbed.

const $ = (id) => document.getElementById(id);
const FRAME_MS = 42; // the environment's own speed is 24 steps a second

export class EpisodePlayer {
  constructor() {
    this.slider = $("step");
    this.reset();
    this.slider.addEventListener("input", () => {
      this.playing = false;
      this.show(Number(this.slider.value));
    });
    $("replay").addEventListener("click", () => (this.playing ? this.pause() : this.replay()));
    requestAnimationFrame((now) => this.tick(now));
  }

  reset(image) {
    this.steps = [];
    this.at = 0;
    this.lastTime = 0;
    this.live = false;
    this.playing = false;
    this.successStep = null;
    this.expertSuccessStep = null;
    this.onEnd = null;
    this.slider.disabled = $("replay").disabled = true;
    this.slider.value = 0;
    if (image) $("agent").src = image;
    $("observation").hidden = $("expert").hidden = true;
    $("question").hidden = false;
    for (const id of ["agent-figure", "expert-figure"]) $(id).classList.remove("success");
    this.drawTimeline();
  }

  start(event) {
    this.reset(event.agent_image);
    this.steps = [{ ...event, expert_image: event.agent_image, done: null }];
    this.live = this.playing = true;
    $("question").hidden = true;
    $("expert").hidden = false;
    this.show(0);
  }

  add(event) {
    const previous = this.steps.at(-1);
    this.steps.push({ ...event, expert_image: event.expert_image ?? previous.expert_image });
    this.drawTimeline();
  }

  end(event) {
    this.successStep = event.success_step;
    this.expertSuccessStep = event.expert_success_step;
    this.drawTimeline();
    this.enable();
  }

  // The steps received so far can be replayed, also after an error.
  enable() {
    this.live = false;
    const any = this.steps.length > 1;
    this.slider.disabled = $("replay").disabled = !any;
    if (any) this.slider.max = this.steps.length - 1;
  }

  replay() {
    if (this.at >= this.steps.length - 1) this.at = 0;
    this.playing = true;
    this.updateButton();
  }

  pause() {
    this.playing = false;
    this.updateButton();
  }

  tick(now) {
    if (this.playing && now - this.lastTime >= FRAME_MS) {
      if (this.at < this.steps.length - 1) {
        this.lastTime = now;
        this.show(this.at + 1);
      } else if (!this.live) {
        this.pause();
        this.onEnd?.();
      }
    }
    requestAnimationFrame((next) => this.tick(next));
  }

  show(step) {
    const frame = this.steps[step];
    if (!frame) return;
    this.at = step;
    $("agent").src = frame.agent_image;
    $("observation").src = frame.observation;
    $("observation").hidden = false;
    $("expert").src = frame.expert_image;
    $("agent-figure").classList.toggle("success", Boolean(frame.success));
    $("expert-figure").classList.toggle("success", Boolean(frame.expert_success));
    this.slider.value = step;
    this.slider.setAttribute("aria-valuetext", `step ${step}${frame.success ? ", success" : ""}`);
    this.drawCursor();
    this.updateButton();
  }

  updateButton() {
    const icon = this.playing ? "pause" : "play";
    $("replay").querySelector("use").setAttribute("href", `#${icon}`);
    $("replay").setAttribute("aria-label", this.playing ? "Pause" : "Replay");
  }

  // Steps with success, the agent's probability that it is done, and the step of the expert's success.
  drawTimeline() {
    const timeline = $("timeline");
    const last = Math.max(75, this.steps.length - 1);
    timeline.setAttribute("viewBox", `0 0 ${last} 24`);
    const bars = this.steps
      .filter((frame) => frame.success && frame.step)
      .map((frame) => svg("rect", { x: frame.step - 1, y: 0, width: 1.02, height: 24, class: "success" }));
    const known = this.steps.filter((frame) => frame.done !== null && frame.done !== undefined);
    const points = known.map((frame) => `${frame.step},${22 - 20 * frame.done}`).join(" ");
    const shapes = [...bars, svg("polyline", { points, class: "done" })];
    if (this.expertSuccessStep !== null) {
      shapes.push(svg("line", { x1: this.expertSuccessStep, x2: this.expertSuccessStep, y1: 0, y2: 24, class: "expert" }));
    }
    this.cursor = svg("line", { y1: 0, y2: 24, class: "cursor" });
    timeline.replaceChildren(...shapes, this.cursor);
    const outcome = this.successStep === null ? "No success" : `Success at step ${this.successStep}`;
    timeline.setAttribute("aria-label", this.steps.length ? outcome : "No episode yet");
    this.drawCursor();
  }

  drawCursor() {
    this.cursor.setAttribute("x1", this.at);
    this.cursor.setAttribute("x2", this.at);
  }
}

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
