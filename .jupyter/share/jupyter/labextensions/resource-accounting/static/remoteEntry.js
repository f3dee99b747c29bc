// What JupyterLab leaves out: alt texts of pictures in outputs, for people who use a screen reader; the living pictures,
// alive before anything has run; and keys for slides. Written by hand, without a build step: what JupyterLab asks of an extension is an object with `init` and `get`
// (webpack's module federation), found under the name in package.json.
(window._JUPYTERLAB ??= {})["resource-accounting"] = (() => {
  let shared;
  const here = document.currentScript.src;
  const known = async (name) => (await Object.values(shared[name])[0].get())();

  // An output's picture has its alt text in the metadata, `metadata["image/png"]["alt"]`, and JupyterLab draws it
  // without. This adds the text to JupyterLab's own renderer and leaves the rest to that.
  async function pictures() {
    const { RenderedImage, imageRendererFactory } = await known("@jupyterlab/rendermime");
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
    const { INotebookTracker } = await known("@jupyterlab/notebook");
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

  // A living picture in a stored output, `{ view, state, given }`: its module lies beside this file. It needs no kernel.
  // While the kernel lives that made the output, its widget and the picture keep in step, by Jupyter's widget messages;
  // no widget manager takes part, so that it does not matter which widgets the server knows.
  async function views() {
    const TYPE = "application/vnd.resource-accounting.view+json";
    const { INotebookTracker } = await known("@jupyterlab/notebook");
    const { IRenderMimeRegistry } = await known("@jupyterlab/rendermime");
    const { KernelMessage } = await known("@jupyterlab/services");
    const { Widget } = await known("@lumino/widgets");
    const twins = new Map(); // by the id of the widget: what is displayed twice has one state
    const left = new Map(); // by what a picture shows first, the state that a reader has left: its cell, run again, goes on

    // The state of a picture, in the form that its module asks for.
    class Twin {
      listeners = new Set();
      waiting = {}; // what the kernel has not been told
      constructor(values) {
        this.values = values;
      }
      get(name) {
        return this.values[name];
      }
      set(name, value) {
        this.values[name] = value;
        this.waiting[name] = value;
        this.touched = true;
      }
      save_changes() {
        this.listeners.forEach((listener) => listener());
        this.send();
      }
      on(event, listener) {
        this.listeners.add(listener);
      }
      off(event, listener) {
        this.listeners.delete(listener);
      }

      // One message at a time: what changes meanwhile goes with the next.
      async send() {
        if (!this.kernel || this.sent || !Object.keys(this.waiting).length) return;
        this.sent = this.waiting;
        this.waiting = {};
        await this.tell({ method: "update", state: this.sent, buffer_paths: [] }).catch(() => {});
        this.sent = null;
        this.send();
      }
      async tell(data) {
        const { clientId: session, username } = this.kernel;
        const content = { comm_id: this.id, data };
        const message = KernelMessage.createMessage({ msgType: "comm_msg", channel: "shell", session, username, content });
        return this.kernel.sendShellMessage(message, false, true).done;
      }

      // From now on the widget of this id, if the kernel has it, and this are one.
      async join(kernel, id) {
        if (this.kernel || !kernel || !id) return;
        const { content } = await kernel.requestCommInfo({ target_name: "jupyter.widget" });
        if (this.kernel || !content.comms?.[id]) return;
        Object.assign(this, { kernel, id });
        kernel.iopubMessage.connect(this.receive, this);
        kernel.statusChanged.connect(this.part, this);
        if (Object.keys(this.waiting).length) this.send();
        else this.tell({ method: "request_state" }).catch(() => {});
      }
      part(kernel, status) {
        if (!/restarting|terminating|dead|unknown/.test(status)) return;
        kernel.iopubMessage.disconnect(this.receive, this);
        kernel.statusChanged.disconnect(this.part, this);
        this.kernel = null;
      }
      receive(kernel, { header, content }) {
        if (header.msg_type !== "comm_msg" || content.comm_id !== this.id || content.data.method !== "update") return;
        const newer = { ...this.sent, ...this.waiting }; // than what the kernel has just told
        for (const [name, value] of Object.entries(content.data.state)) {
          if (name in this.values && !(name in newer)) this.values[name] = value;
        }
        this.listeners.forEach((listener) => listener());
      }
    }

    const style = document.createElement("link");
    Object.assign(style, { rel: "stylesheet", href: new URL("explore/style.css", here).href });

    function factory(tracker) {
      class LivingPicture extends Widget {
        async renderModel({ data, metadata }) {
          const { view, state, given } = data[TYPE];
          this.widget = metadata[TYPE]?.model;
          this.leave();
          this.key = JSON.stringify([view, state, given]);
          try {
            if (!/^[a-z_]+$/.test(view)) throw new Error(`no view ${view}`);
            const { default: module } = await import(new URL(`explore/${view}.js`, here).href);
            this.twin = twins.get(this.widget) ?? this.fresh(state, given);
            if (this.widget) twins.set(this.widget, this.twin);
            const place = document.createElement("div");
            this.node.replaceChildren(place);
            this.stop = module.render({ model: this.twin, el: place });
            this.join();
          } catch (error) {
            console.warn("The stored picture, or the words, stand for a view that this version does not draw.", error);
            this.showPicture(data, metadata);
          }
        }
        fresh(state, given) {
          const twin = new Twin({ ...JSON.parse(given), ...state });
          const before = left.get(this.key);
          left.delete(this.key);
          if (before) Object.keys(state).forEach((name) => twin.set(name, before[name]));
          return twin;
        }
        leave() {
          this.stop?.();
          if (this.twin?.touched) left.set(this.key, this.twin.values);
        }
        showPicture(data, metadata) {
          if (!data["image/png"]) {
            const words = document.createElement("pre");
            words.textContent = data["text/plain"];
            return this.node.replaceChildren(words);
          }
          const image = new Image();
          image.src = `data:image/png;base64,${data["image/png"]}`;
          image.alt = metadata["image/png"]?.alt ?? data["text/plain"];
          image.style.maxWidth = "100%";
          this.node.replaceChildren(image);
        }
        onAfterAttach() {
          this.join();
        }
        async join() {
          const panel = tracker.find((panel) => panel.node.contains(this.node));
          if (!panel || !this.twin || !this.widget) return;
          await panel.sessionContext.ready;
          await this.twin.join(panel.sessionContext.session?.kernel, this.widget);
        }
        dispose() {
          this.leave();
          super.dispose();
        }
      }
      return { safe: true, mimeTypes: [TYPE], createRenderer: () => new LivingPicture() };
    }

    function activate(app, tracker, rendermime) {
      document.head.append(style);
      rendermime.addFactory(factory(tracker), -100); // before widgets and pictures
      tracker.widgetAdded.connect(() => left.clear()); // what was left by one notebook is not another's
    }
    return { id: "resource-accounting:views", autoStart: true, requires: [INotebookTracker, IRenderMimeRegistry], activate };
  }

  // A name that is not defined, or the kernel's first cell that fails: mostly the kernel has been restarted, as by
  // opening the notebook another day.
  async function restart() {
    const { NotebookActions } = await known("@jupyterlab/notebook");
    const { Notification } = await known("@jupyterlab/apputils");
    function activate({ commands }) {
      const callback = () => commands.execute("notebook:run-all-above");
      const actions = [{ label: "Run All Above", callback, displayType: "accent" }];
      const said = "After a restart of the kernel, or when a notebook is opened again, run the cells above first.";
      let shown = null;
      NotebookActions.executed.connect((_, { cell, error }) => {
        const isUndefined = error?.errorName === "NameError", isFirst = cell.model.executionCount === 1;
        if (!error || !(isUndefined || isFirst)) return;
        if (shown) Notification.dismiss(shown);
        shown = Notification.info(isUndefined ? `A name is not defined. ${said}` : said, { actions, autoClose: 20_000 });
      });
    }
    return { id: "resource-accounting:restart", autoStart: true, activate };
  }

  // Text in outputs is broken between words, and within one only where it is too long for a line.
  const style = document.createElement("style");
  style.textContent = "body .jp-OutputArea-output pre { word-break: normal; overflow-wrap: anywhere; }";
  document.head.append(style);

  const plugins = async () => [await views(), await deck(), await restart()];

  return {
    init: (scope) => void (shared = scope),
    get: async (part) => {
      const extension = await { "./pictures": pictures, "./plugins": plugins }[part]();
      return () => extension;
    },
  };
})();
