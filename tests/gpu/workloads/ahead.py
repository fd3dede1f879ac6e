"""What a step needs, prepared in its turn or one step ahead in a second stream."""


class Ahead:
    """get(i) is prepare(i), a tuple of tensors; with overlap it was begun in the step before, beside that step's work.

    The usual recipe: an event tells the first stream when it is there, and the allocator is told who uses it.
    """

    def __init__(self, torch, prepare, overlap):
        self.torch = torch
        self.prepare = prepare
        self.side = torch.cuda.Stream() if overlap else None
        self.next = None

    def begin(self, i):
        with self.torch.cuda.stream(self.side):
            prepared = self.prepare(i)
            self.next = prepared, self.side.record_event()

    def get(self, i):
        if not self.side:
            return self.prepare(i)
        if not self.next:
            self.begin(i)
        prepared, ready = self.next
        stream = self.torch.cuda.current_stream()
        stream.wait_event(ready)
        for tensor in prepared:
            tensor.record_stream(stream)
        self.begin(i + 1)
        return prepared
