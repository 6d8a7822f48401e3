import CLinux
import Glibc
import PrismAdmission
import PrismBase
import PrismInputs

/// A socket for datagrams, on the ingest server's thread. Datagrams have no answers: those that were read are handed to their
/// input, and the next are read meanwhile. The queue is bounded and not charged to users: no sender holds up the others.
actor DatagramQueue {
  private static let bytesMax = 128 * 1024
  /// Datagrams that are read between two looks at the other sockets.
  private static let readsPerRound = 256
  /// Of each datagram beside its bytes.
  private static let frameBytes = 64
  private static let lastReads = 4

  private nonisolated let loop: SocketLoop
  /// The server's thread.
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let id: Int
  private let entrance: Entrance
  private let descriptor: Int32
  private weak var server: IngestServer?
  private var waiting: [Datagram] = []
  private var bytes = 0
  private var buffer = [UInt8](repeating: 0, count: Datagram.bytesMax)
  /// Senders of those that wait: each is looked up once for all that the input takes together.
  private var peers: [[UInt32]: ReportingPeer] = [:]
  private var droppedBefore: UInt32 = 0
  /// The input has some; nil: it waits for more.
  private var task: Task<Void, Never>?

  /// - Parameter id: of the entrance in the loop.
  init(_ id: Int, _ entrance: Entrance, _ descriptor: Int32, of server: IngestServer) {
    (self.id, self.entrance, self.descriptor, self.server, loop) = (id, entrance, descriptor, server, server.loop)
  }

  private var input: String { entrance.isSyslog ? SyslogInput.name : StatsdInput.name }

  /// Something came. A queue that is full is not read.
  func receive() {
    read()
    noteDropped()
    watch()
    guard task == nil else { return }
    task = Task {
      while let datagrams = takeWaiting() {
        watch()
        await hand(datagrams)
      }
      task = nil
    }
  }

  /// Takes what came before the end, within this time: a store that is slow loses the rest, and no sender had an answer for it.
  static func end(_ queues: [DatagramQueue], within limit: Duration, _ time: any TimeSource) async {
    guard !queues.isEmpty else { return }
    let limit = Task { _ = try? await time.sleep(for: limit) }
    Task {
      for queue in queues { await queue.end() }
      limit.cancel()
    }
    await limit.value
  }

  private func end() async {
    for _ in 0..<Self.lastReads {
      await task?.value
      let isMore = read()
      if let datagrams = takeWaiting() { await hand(datagrams) }
      if !isMore { break }
    }
    noteDropped()
  }

  private func hand(_ datagrams: [Datagram]) async {
    guard let server else { return }
    count(await server.otherInputs.take(datagrams, entrance, to: server))
  }

  private func count(_ outcomes: [IngestCounters.Message.Outcome: Int]) {
    server?.assumeIsolated { [input] in $0.counts.add(outcomes, of: input) }
  }

  private func watch() {
    let isFull = bytes >= Self.bytesMax
    server?.assumeIsolated { [id] in $0.watch(id, reads: !isFull) }
  }

  /// Reads as far as there is room. - Returns: false at the end of the datagrams.
  @discardableResult private func read() -> Bool {
    for _ in 0..<Self.readsPerRound where bytes < Self.bytesMax {
      var sender: [UInt32] = [0, 0, 0]
      let count = prism_receive(descriptor, &buffer, buffer.count, &sender)
      guard count >= 0 else { return false }
      let known = min(count, buffer.count)
      waiting.append(Datagram(Array(buffer[..<known]), isCut: count > known, from: peer(sender)))
      bytes += known + Self.frameBytes
    }
    return true
  }

  private func takeWaiting() -> [Datagram]? {
    defer { (waiting, bytes, peers) = ([], 0, [:]) }
    return waiting.isEmpty ? nil : waiting
  }

  private func peer(_ sender: [UInt32]) -> ReportingPeer {
    if let known = peers[sender] { return known }
    let peer = ReportingPeer(processID: Int32(bitPattern: sender[0]), userID: sender[1], groupID: sender[2])
    peers[sender] = peer
    return peer
  }

  /// Counts datagrams that the kernel dropped since the last call.
  func noteDropped() {
    let now = prism_dropped(descriptor)
    let dropped = Int(now &- droppedBefore)
    droppedBefore = now
    guard dropped > 0 else { return }
    count([.dropped: dropped])
    server?.log.fault(
      "datagrams.\(input)",
      "the kernel dropped datagrams: they came faster than they are stored; raise net.core.rmem_max, or use the Unix socket",
      ["input": input], level: .error)
  }
}
