import CCurl
import PrismBase
import PrismProtocol

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

/// Reads a URL as curl itself does.
enum CurlURL {
  /// The host is `localhost`, in 127.0.0.0/8, or `::1`. A URL that curl can't read is not.
  static func isLoopback(_ url: String) -> Bool {
    host(of: url).map { $0 == "[::1]" || HostAndPort.isLoopback($0) } ?? false
  }

  /// Host and port; the URL itself where curl can't read it.
  static func server(of url: String) -> String {
    guard let host = host(of: url), let port = part(CURLUPART_PORT, of: url, CURLU_DEFAULT_PORT) else { return url }
    return "\(host):\(port)"
  }

  private static func host(of url: String) -> String? { part(CURLUPART_HOST, of: url, 0)?.lowercased() }

  private static func part(_ name: CURLUPart, of url: String, _ flags: Int32) -> String? {
    guard let parsed = curl_url() else { return nil }
    defer { curl_url_cleanup(parsed) }
    var part: UnsafeMutablePointer<CChar>?
    guard curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK,
      curl_url_get(parsed, name, &part, UInt32(flags)) == CURLUE_OK, let part
    else { return nil }
    defer { curl_free(part) }
    return String(cString: part)
  }
}
