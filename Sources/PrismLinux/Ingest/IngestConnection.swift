import PrismBase
import PrismEngine
import PrismProtocol

/// One client's connection; only touched on the ingest server's queue.
final class IngestConnection {
  /// Why nothing is read from it for now.
  struct Pauses: OptionSet {
    let rawValue: Int
    /// Its share of the memory before the commit is used up.
    static let budget = Pauses(rawValue: 1)
    /// The client doesn't read its answers.
    static let output = Pauses(rawValue: 2)
    /// A request over HTTP waits for its commit.
    static let exchange = Pauses(rawValue: 4)
    /// Nothing more comes.
    static let ended = Pauses(rawValue: 8)
  }

  /// Unsent answers past which nothing more is read from a client.
  static let outputBytesMax = 256 * 1024

  let id: Int
  let peer: ReportingPeer
  let descriptor: SharedDescriptor
  var conversation: IngestConversation
  /// nil: the line protocol, or not decided yet.
  var http: HTTPExchange?
  private var isProtocolKnown = false
  /// The first line as far as it came, while it may still be HTTP's.
  private var opening: [UInt8] = []

  var pauses: Pauses = [] { didSet { updateWatch() } }
  /// When it is closed unless something arrives before, on the `uptime` clock.
  var deadline: Duration?
  var isWaitingForBudget = false
  /// It has reports that the next commit may take.
  var isUnsealed = false
  /// It is watched no more; what was read of it is committed all the same.
  private(set) var isGone = false
  private(set) var isWriteShut = false
  /// The client takes no answers any more: they are dropped. What it sent is read to its end.
  private var isDeaf = false

  private var watch: SocketLoop.Watch?
  private var outbound: [UInt8] = []
  private var sentBytes = 0

  init(id: Int, peer: ReportingPeer, descriptor: SharedDescriptor, conversation: IngestConversation) {
    (self.id, self.peer, self.descriptor, self.conversation) = (id, peer, descriptor, conversation)
  }

  /// Begins to be watched. Call it once; `close` ends it. - Returns: false where the kernel has no room for it.
  func activate(in loop: SocketLoop) -> Bool {
    watch = loop.watch(descriptor.number, id: id)
    return watch != nil
  }

  var wantsToRead: Bool { watch?.reads == true }
  var wantsToWrite: Bool { watch?.writes == true }

  func close() {
    isGone = true
    watch?.end()
    watch = nil
    outbound = []
    sentBytes = 0
  }

  private func updateWatch() { watch?.set(reads: pauses.isEmpty, writes: unsentBytes > 0) }
}

// MARK: - Out

extension IngestConnection {
  var unsentBytes: Int { outbound.count - sentBytes }

  /// Sends what the conversation has ready, as far as the client takes it.
  func send() {
    collect()
    guard !isGone else {
      outbound = []
      return
    }
    while unsentBytes > 0 && !isDeaf {
      guard let count = descriptor.write(outbound[sentBytes...]) else {
        isDeaf = true
        break
      }
      if count == 0 { break }
      sentBytes += count
    }
    if unsentBytes == 0 || isDeaf { (outbound, sentBytes) = ([], 0) }
    updateWatch()
    if unsentBytes > Self.outputBytesMax { pauses.insert(.output) } else { pauses.remove(.output) }
  }

  private func collect() {
    if http != nil {
      http?.collect(from: &conversation)
      outbound += http?.takeOutput() ?? []
    } else if outbound.isEmpty {
      swap(&outbound, &conversation.output)
    } else {
      outbound += conversation.output
      conversation.output.removeAll(keepingCapacity: true)
    }
  }

  /// Says to the client that no more answers come.
  func shutWriting() {
    guard !isWriteShut, !isGone else { return }
    isWriteShut = true
    descriptor.shutWriting()
  }
}

// MARK: - In

extension IngestConnection {
  func consume(_ chunk: Span<UInt8>, unixMilliseconds now: Int64) {
    guard isProtocolKnown else { return open(chunk, unixMilliseconds: now) }
    if http != nil {
      http?.consume(chunk, &conversation, unixMilliseconds: now)
      updateExchange()
    } else {
      conversation.consume(chunk, unixMilliseconds: now)
    }
  }

  /// The first byte tells the protocol, except that a letter may also begin a line that is no JSON: then the line's end
  /// does, so that a slip on the first line isn't answered in a language that the client doesn't speak.
  private func open(_ chunk: Span<UInt8>, unixMilliseconds now: Int64) {
    opening.append(copying: chunk, chunk.indices)
    guard let first = opening.first else { return }
    if first.isASCIILetter {
      let end = opening.firstIndex(of: 0x0A)
      guard end != nil || opening.count > HTTPHead.bytesMax else { return }
      if end.map({ HTTPHead.isRequestLine(opening[..<$0]) }) != false { http = HTTPExchange() }
    }
    beginProtocol(unixMilliseconds: now)
  }

  private func beginProtocol(unixMilliseconds now: Int64) {
    isProtocolKnown = true
    let begun = opening
    opening = []
    consume(begun.span, unixMilliseconds: now)
  }

  func endInput(unixMilliseconds now: Int64) {
    if !isProtocolKnown { beginProtocol(unixMilliseconds: now) }
    if http != nil { http?.end() } else { conversation.end(unixMilliseconds: now) }
    pauses.insert(.ended)
  }

  /// After answers were collected: the next of pipelined HTTP requests may begin.
  /// - Returns: whether there is something to send again.
  func proceed(unixMilliseconds now: Int64) -> Bool {
    guard http != nil, !isGone else { return false }
    http?.proceed(&conversation, unixMilliseconds: now)
    updateExchange()
    return http?.hasOutput == true || (http?.isAwaitingAnswers == true && conversation.isSettled)
  }

  private func updateExchange() {
    if http?.isAwaitingAnswers == true { pauses.insert(.exchange) } else { pauses.remove(.exchange) }
  }

  var partialBytes: Int { opening.count + conversation.partialBytes + (http?.heldBytes ?? 0) }
  var isWithinRequest: Bool { !opening.isEmpty || http?.isWithinRequest ?? conversation.isWithinRequest }
  var mustClose: Bool { conversation.mustClose || http?.mustClose == true }
  /// Nothing is owed to the client, and nothing of it is on its way.
  var isSettled: Bool { conversation.isSettled && unsentBytes == 0 && http?.isAwaitingAnswers != true }
}

extension UInt8 {
  var isASCIILetter: Bool { 0x41...0x5A ~= self || 0x61...0x7A ~= self }
}
