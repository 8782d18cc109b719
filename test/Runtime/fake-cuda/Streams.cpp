//===- Streams.cpp - Streams, events and graphs ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCUDA.h"

#include <chrono>
#include <deque>
#include <memory>
#include <set>

using namespace fake;

namespace {
struct Graph {
  std::vector<Work> works;
};

struct Stream {
  void *context;
  /// Whether the default stream and this one wait for each other.
  bool isBlocking;
  std::deque<Work> queue;
  /// The graph that work goes to, and whether it is lost.
  std::unique_ptr<Graph> capture;
  bool isInvalid = false;
};

struct Event {
  /// Where it was recorded last, and how many records there are and were
  /// reached.
  Stream *stream = nullptr;
  int recorded = 0, reached = 0;
  /// When the last record was reached.
  std::chrono::steady_clock::time_point time;
};
} // namespace

static std::set<Stream *> &getStreams() {
  static auto &streams = *new std::set<Stream *>;
  return streams;
}

static Stream &getDefaultStream() {
  static auto &stream = *new Stream{nullptr, true, {}, nullptr};
  return stream;
}

/// Null, and CU_STREAM_LEGACY.
static bool isDefault(void *stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 1;
}

static Stream &getStream(void *stream) {
  return isDefault(stream) ? getDefaultStream()
                           : *static_cast<Stream *>(stream);
}

void *fake::getContextOfStream(void *stream) {
  return getStream(stream).context;
}

const char *fake::getStreamName(void *stream) {
  return isDefault(stream) ? "null" : "stream";
}

static void runAll(Stream &stream) {
  while (!stream.queue.empty()) {
    Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    // A kernel that fails is the last one.
    if (getError("") == kSuccess)
      work();
  }
}

void fake::drain(void *handle) {
  Stream &stream = getStream(handle);
  if (&stream == &getDefaultStream()) {
    for (Stream *other : getStreams())
      if (other->isBlocking)
        runAll(*other);
  } else if (stream.isBlocking) {
    runAll(getDefaultStream());
  }
  runAll(stream);
}

void fake::drainAll() {
  drain(nullptr);
  for (Stream *stream : getStreams())
    runAll(*stream);
}

Result fake::enqueue(void *handle, Work work) {
  Stream &stream = getStream(handle);
  if (stream.capture) {
    if (stream.isInvalid)
      return kCaptureInvalidated;
    stream.capture->works.push_back(std::move(work));
    return kSuccess;
  }
  // What it has to wait for comes first.
  if (&stream == &getDefaultStream()) {
    for (Stream *other : getStreams())
      if (other->isBlocking && !other->capture)
        runAll(*other);
  } else if (stream.isBlocking) {
    runAll(getDefaultStream());
  }
  stream.queue.push_back(std::move(work));
  return kSuccess;
}

bool fake::invalidateCaptures() {
  bool found = false;
  for (Stream *stream : getStreams())
    if (stream->capture)
      found = stream->isInvalid = true;
  return found;
}

void fake::resetStreams() {
  getDefaultStream().queue.clear();
  for (Stream *stream : getStreams()) {
    stream->queue.clear();
    stream->capture.reset();
    stream->isInvalid = false;
  }
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

EXPORT Result cuStreamCreate(void **created, unsigned flags) {
  Lock lock(mutex);
  auto *stream = new Stream{getCurrentContext(), !(flags & 1), {}, nullptr};
  getStreams().insert(stream);
  *created = stream;
  return print("cuStreamCreate", "%u", flags);
}

EXPORT Result cuStreamCreateWithPriority(void **created, unsigned flags, int) {
  return cuStreamCreate(created, flags);
}

EXPORT Result cuStreamDestroy_v2(void *destroyed) {
  Lock lock(mutex);
  drain(destroyed);
  Result result = print("cuStreamDestroy", "%s", getStreamName(destroyed));
  if (getStreams().erase(static_cast<Stream *>(destroyed)))
    delete static_cast<Stream *>(destroyed);
  return result;
}

EXPORT Result cuStreamSynchronize(void *waited) {
  Lock lock(mutex);
  if (Result result = forbid("cuStreamSynchronize", "synchronizes"))
    return result;
  drain(waited);
  return print("cuStreamSynchronize", "%s", getStreamName(waited));
}

EXPORT Result cuStreamQuery(void *stream) {
  return getStream(stream).queue.empty() ? getError("cuStreamQuery")
                                         : kNotReady;
}

EXPORT Result cuStreamGetCtx(void *stream, void **context) {
  *context = getContextOfStream(stream);
  if (!*context)
    *context = getCurrentContext();
  return kSuccess;
}

EXPORT Result cuStreamGetFlags(void *stream, unsigned *flags) {
  *flags = !getStream(stream).isBlocking;
  return kSuccess;
}

EXPORT Result cuStreamGetPriority(void *, int *priority) {
  *priority = 0;
  return kSuccess;
}

EXPORT Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Capture and graphs
//===----------------------------------------------------------------------===//

EXPORT Result cuStreamIsCapturing(void *stream, int *status) {
  Lock lock(mutex);
  Stream &found = getStream(stream);
  *status = !found.capture ? 0 : found.isInvalid ? 2 : 1;
  return kSuccess;
}

EXPORT Result cuStreamBeginCapture_v2(void *stream, int mode) {
  Lock lock(mutex);
  Stream &found = getStream(stream);
  if (isDefault(stream) || found.capture)
    return kInvalidValue;
  found.capture = std::make_unique<Graph>();
  found.isInvalid = false;
  return print("cuStreamBeginCapture", "%d", mode);
}

EXPORT Result cuStreamEndCapture(void *stream, void **graph) {
  Lock lock(mutex);
  Stream &found = getStream(stream);
  *graph = nullptr;
  if (!found.capture)
    return kInvalidValue;
  std::unique_ptr<Graph> captured = std::move(found.capture);
  if (found.isInvalid)
    return kCaptureInvalidated;
  size_t count = captured->works.size();
  *graph = captured.release();
  return print("cuStreamEndCapture", "%zu nodes", count);
}

EXPORT Result cuGraphInstantiateWithFlags(void **executable, void *graph,
                                          unsigned long long) {
  Lock lock(mutex);
  *executable = new Graph(*static_cast<Graph *>(graph));
  return print("cuGraphInstantiate", "");
}

EXPORT Result cuGraphLaunch(void *executable, void *stream) {
  Lock lock(mutex);
  if (Result result = print("cuGraphLaunch", "%s", getStreamName(stream)))
    return result;
  for (const Work &work : static_cast<Graph *>(executable)->works)
    if (Result result = enqueue(stream, work))
      return result;
  return kSuccess;
}

EXPORT Result cuGraphDestroy(void *graph) {
  delete static_cast<Graph *>(graph);
  return kSuccess;
}
EXPORT Result cuGraphExecDestroy(void *graph) { return cuGraphDestroy(graph); }

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

using EventHandle = std::shared_ptr<Event>;

static const EventHandle &getEvent(void *event) {
  return *static_cast<EventHandle *>(event);
}

EXPORT Result cuEventCreate(void **event, unsigned) {
  if (Result result = getError("cuEventCreate"))
    return result;
  *event = new EventHandle(std::make_shared<Event>());
  return kSuccess;
}

/// Work that has the event is done all the same.
EXPORT Result cuEventDestroy_v2(void *event) {
  Lock lock(mutex);
  delete static_cast<EventHandle *>(event);
  return kSuccess;
}

EXPORT Result cuEventRecord(void *event, void *stream) {
  Lock lock(mutex);
  if (Result result = getError("cuEventRecord"))
    return result;
  EventHandle recorded = getEvent(event);
  recorded->stream = &getStream(stream);
  int number = ++recorded->recorded;
  return enqueue(stream, [=] {
    recorded->reached = number;
    recorded->time = std::chrono::steady_clock::now();
  });
}

static void runNext(Stream &stream) {
  Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  work();
}

/// Does the work of a stream before a record of an event.
static void reach(const Event &event, Stream &stream, int number) {
  while (event.reached < number && !stream.queue.empty())
    runNext(stream);
}

EXPORT Result cuStreamWaitEvent(void *stream, void *event, unsigned) {
  Lock lock(mutex);
  if (Result result = getError("cuStreamWaitEvent"))
    return result;
  EventHandle waited = getEvent(event);
  // Later records of the event don't matter.
  Stream *source = waited->stream;
  int number = waited->recorded;
  return enqueue(stream, [=] { reach(*waited, *source, number); });
}

EXPORT Result cuEventSynchronize(void *event) {
  Lock lock(mutex);
  if (Result result = forbid("cuEventSynchronize", "synchronizes"))
    return result;
  const EventHandle &waited = getEvent(event);
  reach(*waited, *waited->stream, waited->recorded);
  return print("cuEventSynchronize", "");
}

/// The time in which the host did the work between, unless FAKE_CUDA_ELAPSED
/// says another number.
EXPORT Result cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  Lock lock(mutex);
  if (Result result = getError("cuEventElapsedTime"))
    return result;
  for (void *event : {start, end})
    if (getEvent(event)->reached < getEvent(event)->recorded)
      return kNotReady;
  std::string given = getOption("FAKE_CUDA_ELAPSED", "");
  std::chrono::duration<float, std::milli> spent =
      getEvent(end)->time - getEvent(start)->time;
  *milliseconds = given.empty() ? spent.count() : std::stof(given);
  return kSuccess;
}

/// Who asks again and again gets its answer in the end: each time, the stream
/// does a piece of its work.
EXPORT Result cuEventQuery(void *event) {
  Lock lock(mutex);
  if (Result result = getError("cuEventQuery"))
    return result;
  const EventHandle &asked = getEvent(event);
  if (asked->reached == asked->recorded)
    return kSuccess;
  if (!asked->stream->queue.empty())
    runNext(*asked->stream);
  return kNotReady;
}
