// What JupyterLab leaves out: alt texts of pictures in outputs, for people who use a screen reader; and keys for slides.
// Written by hand, without a build step: what JupyterLab asks of an extension is an object with `init` and `get`
// (webpack's module federation), found under the name in package.json.
(window._JUPYTERLAB ??= {})["resource-accounting"] = (() => {
  let shared;

  // An output's picture has its alt text in the metadata, `metadata["image/png"]["alt"]`, and JupyterLab draws it
  // without. This adds the text to JupyterLab's own renderer and leaves the rest to that.
  async function pictures() {
    const [version] = Object.values(shared["@jupyterlab/rendermime"]);
    const { RenderedImage, imageRendererFactory } = (await version.get())();
    class DescribedImage extends RenderedImage {
      async render(model) {
        await super.render(model);
        // Without an alt text, the words beside the picture: matplotlib's own have one line.
        const [words] = String(model.data["text/plain"] ?? "").split("\n");
        this.node.querySelector("img").alt = model.metadata[this.mimeType]?.alt ?? words;
      }
    }
    // The same types at the same rank: the factory registered last is taken.
    const rendererFactory = { ...imageRendererFactory, createRenderer: (options) => new DescribedImage(options) };
    return { id: "resource-accounting:pictures", rendererFactory };
  }

  // Slides (jupyterlab-slideshow). There, Shift+Enter runs a cell and goes to the one below: from a slide's last cell to
  // the next slide, so that nobody sees what came out, and to a cell of notes, which shows as a blank page that no key
  // leaves. Here it runs the cell and stays until what came out was seen; pressed again, and on text, it goes on.
  async function deck() {
    const [version] = Object.values(shared["@jupyterlab/notebook"]);
    const { INotebookTracker } = (await version.get())();
    const type = (cell) => cell?.model.getMetadata("slideshow")?.slide_type ?? "";
    const hidden = (cell) => ["notes", "skip"].includes(type(cell));
    const presenting = () => document.body.dataset.jpDeckMode == "presenting";
    function activate({ commands }, tracker) {
      const notebook = () => tracker.currentWidget?.content;
      let seen, last = 0; // the cell that was run and is still looked at; where the deck was
      window.addEventListener("keydown", (event) => {
        if (!presenting() || !notebook()?.node.contains(event.target)) return;
        if (event.key == "Shift") return;
        if (event.key != "Enter" || !event.shiftKey) return void (seen = null);
        event.preventDefault(), event.stopImmediatePropagation();
        const { activeCell: cell, activeCellIndex: place, widgets } = notebook();
        const run = cell.model.type == "code" && cell != seen;
        if (run) commands.execute("notebook:run-cell"), (seen = cell);
        else notebook().mode = "command";
        const below = widgets.slice(place + 1).find((other) => !hidden(other));
        if (below && (!run || !type(below))) commands.execute("deck:go", { direction: "down", alternate: "forward" });
      }, true);
      const leaveNotes = () => {
        if (!presenting() || !hidden(notebook()?.activeCell)) return void (last = notebook()?.activeCellIndex ?? 0);
        const { activeCellIndex: place, widgets } = notebook(), shown = (cell) => !hidden(cell);
        const back = widgets.slice(0, place).findLastIndex(shown), on = widgets.findIndex((cell, k) => k > place && shown(cell));
        notebook().activeCellIndex = on < 0 || (place < last && back >= 0) ? back : on;
      };
      tracker.activeCellChanged.connect(leaveNotes);
      new MutationObserver(leaveNotes).observe(document.body, { attributeFilter: ["data-jp-deck-mode"] });
    }
    return { id: "resource-accounting:deck", autoStart: true, requires: [INotebookTracker], activate };
  }

  return {
    init: (scope) => void (shared = scope),
    get: async (part) => {
      const extension = await { "./pictures": pictures, "./deck": deck }[part]();
      return () => extension;
    },
  };
})();
