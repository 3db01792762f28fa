// The player of an episode: live while the agent acts; afterwards it can be replayed and scrubbed.

const $ = (id) => document.getElementById(id);
const FRAME_MS = 42; // the environment's own speed is 24 steps a second
const SUFFIXES = ["", "-2"]; // of the elements of the agents

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
    this.outcomes = [];
    this.expertSuccessStep = null;
    this.onEnd = null;
    this.slider.disabled = $("replay").disabled = $("film").disabled = true;
    this.slider.value = 0;
    for (const suffix of SUFFIXES) {
      if (image) $("agent" + suffix).src = image;
      $("observation" + suffix).hidden = true;
      $("agent-figure" + suffix).classList.remove("success");
    }
    $("expert").hidden = true;
    $("question").hidden = false;
    $("expert-figure").classList.remove("success");
    this.drawTimelines();
  }

  start(event) {
    const image = event.agents[0].image;
    this.reset(image);
    this.steps = [{ ...event, expert_image: image }];
    this.live = this.playing = true;
    $("question").hidden = true;
    $("expert").hidden = false;
    this.show(0);
  }

  add(event) {
    const previous = this.steps.at(-1);
    this.steps.push({ ...event, expert_image: event.expert_image ?? previous.expert_image });
    this.drawTimelines();
  }

  end(event) {
    this.outcomes = event.agents;
    this.expertSuccessStep = event.expert_success_step;
    this.drawTimelines();
    this.enable();
    $("film").disabled = false;
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
    frame.agents.forEach((agent, number) => {
      const suffix = SUFFIXES[number];
      $("agent" + suffix).src = agent.image;
      $("observation" + suffix).src = agent.observation;
      $("observation" + suffix).hidden = false;
      $("agent-figure" + suffix).classList.toggle("success", Boolean(agent.success));
    });
    $("expert").src = frame.expert_image;
    $("expert-figure").classList.toggle("success", Boolean(frame.expert_success));
    this.slider.value = step;
    this.slider.setAttribute("aria-valuetext", `step ${step}${frame.agents.some((agent) => agent.success) ? ", success" : ""}`);
    this.drawCursor();
    this.updateButton();
  }

  updateButton() {
    const icon = this.playing ? "pause" : "play";
    $("replay").querySelector("use").setAttribute("href", `#${icon}`);
    $("replay").setAttribute("aria-label", this.playing ? "Pause" : "Replay");
  }

  drawTimelines() {
    this.cursors = SUFFIXES.map((suffix, number) => this.drawTimeline($("timeline" + suffix), number));
    this.drawCursor();
  }

  // Steps with success, the agent's probability that it is done, and the step of the expert's success.
  drawTimeline(timeline, number) {
    timeline.setAttribute("viewBox", `0 0 ${Math.max(75, this.steps.length - 1)} 24`);
    const frames = this.steps.filter(({ agents }) => agents[number]).map(({ step, agents }) => ({ step, ...agents[number] }));
    const bars = frames
      .filter((frame) => frame.success && frame.step)
      .map((frame) => svg("rect", { x: frame.step - 1, y: 0, width: 1.02, height: 24, class: "success" }));
    const known = frames.filter((frame) => frame.done !== null && frame.done !== undefined);
    const points = known.map((frame) => `${frame.step},${22 - 20 * frame.done}`).join(" ");
    const shapes = [...bars, svg("polyline", { points, class: "done" })];
    if (this.expertSuccessStep !== null) {
      shapes.push(svg("line", { x1: this.expertSuccessStep, x2: this.expertSuccessStep, y1: 0, y2: 24, class: "expert" }));
    }
    const cursor = svg("line", { y1: 0, y2: 24, class: "cursor" });
    timeline.replaceChildren(...shapes, cursor);
    const step = this.outcomes[number]?.success_step ?? null;
    const outcome = step === null ? "No success" : `Success at step ${step}`;
    timeline.setAttribute("aria-label", this.steps.length ? outcome : "No episode yet");
    return cursor;
  }

  drawCursor() {
    for (const cursor of this.cursors) {
      cursor.setAttribute("x1", this.at);
      cursor.setAttribute("x2", this.at);
    }
  }
}

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
