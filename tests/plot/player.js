// Draws one frame of a page without a browser: node player.js PAGE ROW WIDE HIGH. Prints the paths that are
// filled or stroked, in their order, each as a list of corners [pixels].
const [page, row, wide, high] = process.argv.slice(2);
const script = require("fs").readFileSync(page, "utf8").match(/<script>([\s\S]*)<\/script>/)[1];
let path = [], drawn = [];
const kept = () => { drawn.push(path.slice()); };
const known = {
  beginPath: () => { path = []; }, moveTo: (x, y) => path.push([x, y]), lineTo: (x, y) => path.push([x, y]),
  fill: kept, stroke: kept, clearRect: () => { drawn = []; },
};
const pen = new Proxy({}, { get: (own, name) => own[name] ?? known[name] ?? (() => {}) });
const elements = {};
const element = name => elements[name] ??= {
  checked: true, value: 1, clientWidth: Number(wide), clientHeight: Number(high), getContext: () => pen,
};
globalThis.document = { getElementById: element, querySelector: element, body: { dataset: {} } };
globalThis.window = { devicePixelRatio: 1 };
globalThis.requestAnimationFrame = () => {};
eval(script.trim().replace(/;$/, "")).then(() => {
  element("row").value = row;
  element("row").oninput();
  console.log(JSON.stringify(drawn));
});
