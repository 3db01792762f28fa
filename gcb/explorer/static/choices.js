// What the visitor has chosen. It lives in the page's address, so that a page can be reloaded, kept or sent on.

const HIGHEST = 2 ** 31 - 1;
export const anySeed = () => Math.floor(Math.random() * 100000);

export const choices = {
  scene: { seed: anySeed(), video: false },
  by: "example",
  task: null,
  before: null,
  after: null,
  turn: 0,
  seed: anySeed(),
  colors: null,
  video: false,
  index: null,
};

export function asked() {
  const { scene, by, task, before, after, turn, seed, colors, video, index } = choices;
  const told = {
    example: { by, seed, task, before, after, turn, colors, video },
    goal: { by, task, after },
    data: { by, index },
  }[by];
  return { scene: { ...scene }, told };
}

// A new scene brings its own task; the example then follows it, unless it is one of the dataset's.
export function followScene() {
  Object.assign(choices, { task: null, before: null, after: null });
}

export function surprise(tasks) {
  const task = tasks[Math.floor(Math.random() * tasks.length)];
  const before = Math.random();
  const after = before > 0.5 ? Math.random() * (before - 0.45) : before + 0.45 + Math.random() * (0.55 - before);
  Object.assign(choices, {
    task,
    before: Math.round(100 * before) / 100,
    after: Math.round(100 * Math.max(0, after)) / 100,
    turn: 5 * Math.round(36 * (Math.random() - 0.5) * Math.random() * 2),
    seed: anySeed(),
    colors: anySeed(),
    video: Math.random() < 0.25,
  });
}

export function asInThePaper() {
  Object.assign(choices, { task: null, before: null, after: null, turn: 0, seed: anySeed(), colors: null, video: false });
}

const whole = (text) => (/^\d{1,10}$/.test(text ?? "") && Number(text) <= HIGHEST ? Number(text) : null);
const between = (text, low, high) => {
  const number = text === null || text === "" ? NaN : Number(text);
  return Number.isFinite(number) && number >= low && number <= high ? number : null;
};

export function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  choices.scene.seed = whole(given.get("scene")) ?? choices.scene.seed;
  choices.scene.video = given.get("scene-video") === "1";
  choices.seed = whole(given.get("place")) ?? choices.seed;
  choices.colors = whole(given.get("colours"));
  choices.index = whole(given.get("point"));
  choices.task = given.get("task");
  choices.before = between(given.get("before"), 0, 1);
  choices.after = between(given.get("after"), 0, 1);
  choices.turn = between(given.get("turn"), -180, 180) ?? 0;
  choices.video = given.get("video") === "1";
  const by = given.get("by");
  choices.by = by === "goal" || (by === "data" && choices.index !== null) ? by : "example";
}

export function writeAddress() {
  const { scene, by, task, before, after, turn, seed, colors, video, index } = choices;
  const shown = { scene: scene.seed, "scene-video": scene.video ? 1 : null, by: by === "example" ? null : by };
  if (by === "data") shown.point = index;
  else Object.assign(shown, { task, before, after });
  if (by === "example") {
    Object.assign(shown, { place: seed, colours: colors, turn: turn || null, video: video ? 1 : null });
  }
  const kept = Object.entries(shown).filter(([, value]) => value !== null);
  history.replaceState(null, "", "#" + new URLSearchParams(kept));
}
