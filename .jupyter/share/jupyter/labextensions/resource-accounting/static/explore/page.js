// The model where there is no kernel, in a page or on a slide. Scripts run in the order of the page, so each finds its
// own element: the first of its kind that is not yet alive.
const place = document.querySelector(`[data-view="${VIEW}"]:not([data-live])`);
const listeners = new Set();
place.dataset.live = "";
place.model = { // also for whoever moves a picture from outside, as the tests do
  get: (name) => STATE[name],
  set: (name, value) => void (STATE[name] = value),
  save_changes: () => listeners.forEach((listener) => listener()),
  on: (event, listener) => listeners.add(listener),
  off: (event, listener) => listeners.delete(listener),
};
module.render({ el: place, model: place.model });
