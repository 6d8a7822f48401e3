import PrismEngine

/// The transfers that are under way, and those that wait for a place, in their order. Two rules keep servers that hang from
/// holding up the others. A server that let its last transfer time out comes last, and it never gets the last quarter of
/// the places. Lives on curl's thread.
struct TransferLine {
  /// Servers whose last transfer timed out; the oldest are forgotten.
  private static let slowMax = 4096

  private let transfersMax: Int
  private var running = 0
  private var waiting: [TransferMailbox.Job] = []
  private var slowWaiting: [TransferMailbox.Job] = []
  private var slow: Set<String> = []

  /// - Parameter transfersMax: 1 or more.
  init(transfersMax: Int) { self.transfersMax = max(1, transfersMax) }

  /// Of all places.
  private var slowPlaces: Int { max(1, transfersMax - transfersMax / 4) }

  var hasNext: Bool {
    running < transfersMax && !waiting.isEmpty || running < slowPlaces && !slowWaiting.isEmpty
  }

  mutating func add(_ job: TransferMailbox.Job) {
    if slow.contains(CurlURL.server(of: job.request.url)) { slowWaiting.append(job) } else { waiting.append(job) }
  }

  /// One for which there is a place now. It counts as running until `ended`.
  mutating func next() -> TransferMailbox.Job? {
    guard hasNext else { return nil }
    running += 1
    return waiting.isEmpty ? slowWaiting.removeFirst() : waiting.removeFirst()
  }

  /// nil: it does not wait.
  mutating func remove(_ id: TransferMailbox.ID) -> TransferMailbox.Job? {
    if let index = waiting.firstIndex(where: { $0.id == id }) { return waiting.remove(at: index) }
    return slowWaiting.firstIndex { $0.id == id }.map { slowWaiting.remove(at: $0) }
  }

  /// - Parameter timedOut: nil: it was taken back, and says nothing of its server.
  mutating func ended(_ job: TransferMailbox.Job, timedOut: Bool?) {
    running -= 1
    let server = CurlURL.server(of: job.request.url)
    guard timedOut == true else {
      if timedOut == false { slow.remove(server) }
      return
    }
    if slow.count >= Self.slowMax { slow.removeAll() }
    slow.insert(server)
    // Those that wait for it, too.
    slowWaiting += waiting.filter { CurlURL.server(of: $0.request.url) == server }
    waiting.removeAll { CurlURL.server(of: $0.request.url) == server }
  }
}
