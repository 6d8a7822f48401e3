/// One request on its way through the server: a pure machine; `Exchange` performs what it says.
struct ExchangeState: Sendable {
  enum Phase: Sendable {
    case receiving  // next: waiting, skipping
    case skipping(HTTPResponse)  // next: sending
    case waiting  // for the handler; the connection is suspended. next: answered
    case answered(HTTPResponse)  // next: sending
    case sending
  }

  enum Event {
    /// A piece of the body; `isAffordable`: the server has room for it beside all other bodies.
    case received(UnsafeRawBufferPointer, isAffordable: Bool)
    /// The body is complete, or the connection was resumed.
    case ready
    case answer(HTTPResponse)
  }

  enum Action {
    case goOn, close, callHandler, resume
    case respond(HTTPResponse)
  }

  private(set) var phase = Phase.receiving
  private(set) var body: [UInt8] = []
  private var skippedBytes = 0
  let bodyBytesMax: Int
  let skippedBytesMax: Int

  /// - Parameter refusal: given when the head alone says that the request is not taken.
  init(bodyBytesMax: Int, skippedBytesMax: Int, refusal: HTTPResponse?) {
    (self.bodyBytesMax, self.skippedBytesMax) = (bodyBytesMax, skippedBytesMax)
    if let refusal { phase = .skipping(refusal) }
  }

  mutating func handle(_ event: Event) -> Action {
    switch (phase, event) {
    case (.receiving, .received(let bytes, let isAffordable)):
      return receive(bytes, isAffordable: isAffordable)
    case (.skipping, .received(let bytes, _)):
      return skip(bytes.count)
    case (.receiving, .ready):
      phase = .waiting
      return .callHandler
    case (.skipping(let response), .ready), (.answered(let response), .ready):
      phase = .sending
      return .respond(response)
    case (.waiting, .answer(let response)):
      phase = .answered(response)
      return .resume
    case (.waiting, .ready), (.sending, .ready), (.receiving, .answer), (.skipping, .answer), (.answered, .answer),
      (.sending, .answer):
      return .goOn
    case (.waiting, .received), (.answered, .received), (.sending, .received):
      return .close  // a body after its end: the connection can't be trusted any more
    }
  }

  /// Each part of the body that comes is thrown away.
  var isSkipping: Bool {
    if case .skipping = phase { true } else { false }
  }

  /// The body leaves the state for its handler.
  mutating func takeBody() -> [UInt8] {
    defer { body = [] }
    return body
  }

  private mutating func receive(_ bytes: UnsafeRawBufferPointer, isAffordable: Bool) -> Action {
    if body.count + bytes.count > bodyBytesMax {
      refuse(.refusal(413, "the body is over \(bodyBytesMax) bytes"))
    } else if !isAffordable {
      refuse(.refusal(503, "too many requests at once, try again", headers: [("Retry-After", "1")]))
    } else {
      body.append(contentsOf: bytes)
      return .goOn
    }
    return skip(bytes.count)
  }

  private mutating func refuse(_ response: HTTPResponse) {
    phase = .skipping(response)
    body = []
  }

  private mutating func skip(_ count: Int) -> Action {
    skippedBytes += count
    return skippedBytes > skippedBytesMax ? .close : .goOn
  }
}
