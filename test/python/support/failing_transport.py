"""A transport that fails at one call of one method."""

import functools


class FailingTransport:
    """Forwards to another transport, but raises at call number ``call`` of ``method``."""

    def __init__(self, transport, method, call):
        self._transport = transport
        self._method = method
        self._left = call
        self.name = transport.name
        self.has_failed = False

    @property
    def address(self):
        return self._transport.address

    def _pass_on(self, method, *arguments):
        if method == self._method:
            self._left -= 1
            if self._left == -1:
                self.has_failed = True
                raise OSError("the cable is cut")
        return getattr(self._transport, method)(*arguments)

    def register(self, regions):
        return self._pass_on("register", regions)

    def connect(self, address):
        return self._pass_on("connect", address)

    def post(self, peer, source, target):
        return self._pass_on("post", peer, source, target)

    def __getattr__(self, name):
        if name != "post_pages":
            raise AttributeError(name)
        getattr(self._transport, name)  # raises unless it has it
        return functools.partial(self._pass_on, name)

    def poll(self, handle):
        return self._pass_on("poll", handle)

    def cancel(self, handle):
        return self._pass_on("cancel", handle)
