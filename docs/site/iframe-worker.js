// Runs the search worker in an iframe where the site is opened as files: browsers start no
// workers from file://. Other protocols keep their workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      this.ready = new Promise((resolve) => {
        const append = () => {
          document.body.appendChild(frame);
          const scope = frame.contentWindow;
          scope.postMessage = (data) => this.receive(data);
          scope.importScripts = (...urls) =>
            urls.reduce((done, each) => done.then(() => load(scope, each)), Promise.resolve());
          load(scope, url).then(() => resolve(scope));
        };
        if (document.body) append();
        else addEventListener("DOMContentLoaded", append);
      });
    }

    // Sends a message to the worker, which listens as in a worker of its own.
    postMessage(data) {
      this.ready.then((scope) =>
        scope.dispatchEvent(new scope.MessageEvent("message", { data })),
      );
    }

    receive(data) {
      this.dispatchEvent(new MessageEvent("message", { data }));
    }
  };

  const load = (scope, url) =>
    new Promise((resolve, reject) => {
      const script = scope.document.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = reject;
      scope.document.body.appendChild(script);
    });
}
