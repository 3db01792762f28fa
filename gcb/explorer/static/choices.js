// The visitor's choices. They are kept in the page's URL, so that a page can be reloaded, bookmarked or shared.

const MAX_SEED = 2 ** 31 - 1;
export const randomSeed = () => Math.floor(Math.random() * 100000);

export const choices = {
  scene: { seed: randomSeed(), video: false },
  by: "example",
  task: null,
  before: null,
  after: null,
  rotation: 0,
  seed: randomSeed(),
  colorSeed: null,
  video: false,
  index: null,
  pictures: { before: null, after: null }, // PNG files in base64; not part of the URL
};

export function taskRequest() {
  const { scene, by, task: name, before, after, rotation, seed, colorSeed, video, index, pictures } = choices;
  const task = {
    example: { by, seed, name, drawer_before: before, drawer_after: after, rotation, color_seed: colorSeed, video },
    goal: { by, name, drawer_after: after },
    dataset: { by, index },
    pictures: { by, ...pictures, name, drawer_after: after },
  }[by];
  return { scene: { ...scene }, task };
}

// A new scene has its own task, and the example follows it, unless it is a task of the dataset.
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
    rotation: 5 * Math.round(36 * (Math.random() - 0.5) * Math.random() * 2),
    seed: randomSeed(),
    colorSeed: randomSeed(),
    video: Math.random() < 0.25,
  });
}

export function asInThePaper() {
  followScene();
  Object.assign(choices, { rotation: 0, seed: randomSeed(), colorSeed: null, video: false });
}

const seedOf = (text) => (/^\d{1,10}$/.test(text ?? "") && Number(text) <= MAX_SEED ? Number(text) : null);
const between = (text, low, high) => {
  const number = text === null || text === "" ? NaN : Number(text);
  return Number.isFinite(number) && number >= low && number <= high ? number : null;
};

export function readUrl() {
  const given = new URLSearchParams(location.hash.slice(1));
  choices.scene.seed = seedOf(given.get("scene")) ?? choices.scene.seed;
  choices.scene.video = given.get("scene-video") === "1";
  choices.seed = seedOf(given.get("example")) ?? choices.seed;
  choices.colorSeed = seedOf(given.get("colors"));
  choices.index = seedOf(given.get("index"));
  choices.task = given.get("task");
  choices.before = between(given.get("before"), 0, 1);
  choices.after = between(given.get("after"), 0, 1);
  choices.rotation = between(given.get("rotation"), -180, 180) ?? 0;
  choices.video = given.get("video") === "1";
  const by = given.get("by");
  choices.pictures = { before: null, after: null };
  choices.by = by === "goal" || (by === "dataset" && choices.index !== null) ? by : "example";
}

export function writeUrl() {
  const { scene, by, task, before, after, rotation, seed, colorSeed, video, index } = choices;
  const fields = { scene: scene.seed, "scene-video": scene.video ? 1 : null, by: ["goal", "dataset"].includes(by) ? by : null };
  if (by === "dataset") fields.index = index;
  else Object.assign(fields, { task, before, after });
  if (by === "example") {
    Object.assign(fields, { example: seed, colors: colorSeed, rotation: rotation || null, video: video ? 1 : null });
  }
  const given = Object.entries(fields).filter(([, value]) => value !== null);
  history.replaceState(null, "", "#" + new URLSearchParams(given));
}
