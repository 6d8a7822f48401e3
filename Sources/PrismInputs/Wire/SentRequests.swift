import PrismAdmission
import PrismBase
import PrismPacket
import PrismProtocol

/// The requests of an input whose answers are not known to have arrived, and the report ids that each was given.
///
/// Equal content alone is no repetition: Fluent Bit makes a chunk's id of the records, so that two equal lines have one. A
/// request is one that came before if all of it is equal, its user too, and the answer to it is lost. Each lost answer makes
/// one repetition, so no event that was acknowledged is dropped. Open and lost ones are in a note of the store, for a start
/// after a crash; after an orderly stop, where each is known, only lost ones are.
struct SentRequests {
  /// How long a request may come again. Fluent Bit waits at most 2,000 s between two attempts.
  static let keptTime: Duration = .seconds(3600)
  /// Past it, the oldest of the user with most are forgotten: then one that comes again is stored again.
  static let requestsMax = 1024
  private static let keyBytes = 16

  private struct Sent {
    let prefix: [UInt8]
    let userID: UInt32?
    let receivedAt: Duration
    /// nil: from before the start.
    let receipt: AnswerReceipt?

    func isLost(at now: Duration) -> Bool {
      now - receivedAt < SentRequests.keptTime && (receipt.map { $0.state == .lost } ?? true)
    }

    /// Whether it may come again, or is not answered yet.
    func isKept(at now: Duration) -> Bool {
      switch receipt?.settledState {
      case .received: false
      case .open: true
      case .lost, nil: now - receivedAt < SentRequests.keptTime
      }
    }
  }

  /// Only this daemon knows it, so a sender can't make two requests that look alike.
  private var secret = (try? Hashing.randomBytes(keyBytes)) ?? []
  /// By the code of all that makes a request; the oldest first.
  private var sent: [[UInt8]: [Sent]] = [:]
  private(set) var count = 0
  private var sweepCount = 64
  /// The note of the run before was read.
  private(set) var isLoaded = false
  private let noteKey: String

  /// - Parameter name: of the input, for the note.
  init(_ name: String) { noteKey = "\(name).sent" }

  /// The beginning of the report ids of a request: those of an equal one whose answer was lost, or new ones.
  /// - Parameter letter: that the ids begin with.
  /// - Returns: nil if there is no chance or code: then the reports have no ids.
  mutating func prefix(
    of content: [UInt8], _ letter: Character, from userID: UInt32, _ receipt: AnswerReceipt, now: Duration
  ) -> ReportID? {
    var sender = Array("\(letter)       ".utf8.prefix(8))
    withUnsafeBytes(of: userID.bigEndian) { sender += $0 }
    guard let key = try? Hashing.gmac(key: secret, nonce: sender, content),
      let fresh = try? Hashing.randomBytes(Self.keyBytes)
    else { return nil }
    var equal = sent[key] ?? []
    count -= equal.count
    let lost = equal.firstIndex { $0.isLost(at: now) }.map { equal.remove(at: $0).prefix }
    equal.removeAll { !$0.isKept(at: now) }
    let prefix = lost ?? fresh
    equal.append(Sent(prefix: prefix, userID: userID, receivedAt: now, receipt: receipt))
    sent[key] = equal
    count += equal.count
    if count > sweepCount { sweep(now) }
    return ReportID("\(letter)\(Hex.encode(prefix))-")
  }

  private mutating func sweep(_ now: Duration) {
    sent = sent.compactMapValues { requests in
      let kept = requests.filter { $0.isKept(at: now) }
      return kept.isEmpty ? nil : kept
    }
    count = sent.values.reduce(0) { $0 + $1.count }
    if count > Self.requestsMax { forgetOldest() }
    sweepCount = max(64, min(2 * count, count + Self.requestsMax / 4))
  }

  /// Leaves three quarters.
  private mutating func forgetOldest() {
    let all = sent.values.joined()
    let counts = Dictionary(all.map { ($0.userID, 1) }, uniquingKeysWith: +)
    guard let largest = counts.max(by: { $0.value < $1.value })?.key else { return }
    let times = all.filter { $0.userID == largest }.map(\.receivedAt).sorted()
    let oldest = times[min(times.count - 1, Self.requestsMax / 4)]
    sent = sent.compactMapValues { requests in
      let kept = requests.filter { $0.userID != largest || $0.receivedAt > oldest }
      return kept.isEmpty ? nil : kept
    }
    count = sent.values.reduce(0) { $0 + $1.count }
  }

  // MARK: The note

  /// The newest requests that may come again, to be stored with the reports of one of them; or, at the end, by itself.
  func note(in namespace: String, now: Duration, needsReports: Bool = true) -> BatchNote? {
    guard let namespace = NamespaceName(namespace) else { return nil }
    let kept = sent.flatMap { key, requests in requests.filter { $0.isKept(at: now) }.map { (key, $0) } }
      .sorted { $0.1.receivedAt > $1.1.receivedAt }
    let most = (BatchNote.valueBytesMax - Self.keyBytes) / (2 * Self.keyBytes)
    let value = secret + kept.prefix(most).flatMap { $0.0 + $0.1.prefix }
    return BatchNote(namespace: namespace, key: noteKey, value: value, needsReports: needsReports)
  }

  /// The note for an orderly stop, when the ends of all connections are known; nil: there was no request.
  func lastNote(in namespace: String, now: Duration) -> BatchNote? {
    isLoaded ? note(in: namespace, now: now, needsReports: false) : nil
  }

  /// Takes the note of the run before: whether its answers arrived is not known.
  mutating func load(_ note: [UInt8], now: Duration) {
    guard !isLoaded else { return }
    isLoaded = true
    let size = 2 * Self.keyBytes
    guard note.count % size == Self.keyBytes else { return }
    secret = Array(note.prefix(Self.keyBytes))
    for start in stride(from: Self.keyBytes, to: note.count, by: size) {
      let (key, prefix) = (note[start..<(start + Self.keyBytes)], note[(start + Self.keyBytes)..<(start + size)])
      let before = Sent(prefix: Array(prefix), userID: nil, receivedAt: now, receipt: nil)
      sent[Array(key), default: []].insert(before, at: 0)
      count += 1
    }
  }

  /// Reads the note of the run before. - Returns: empty if there is no note.
  func stored(by sink: any SubmissionSink, in namespace: String) async -> [UInt8] {
    guard let namespace = NamespaceName(namespace) else { return [] }
    return await sink.note(noteKey, of: namespace) ?? []
  }
}
