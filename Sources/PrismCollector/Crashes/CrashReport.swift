import PrismProtocol

/// The parts of a report that a group of crashes needs.
struct CrashReport: Sendable {
  static let type = "appCrash"
  private static let reasonBytesMax = 200
  /// Members of the meta that say what happened; the first is the reason.
  private static let words = ["reason", "signal", "exception", "error", "message"]

  let report: Int64
  /// The lower id of its rows: a report with a payload has two.
  var firstRow: Int64
  let receivedTime: Int64
  /// When it happened, milliseconds since 1970 by the collector's clock: the created time, as it was corrected for the device's clock.
  /// If the device did not know the time, when it came.
  let happenedTime: Int64
  let device: String, namespace: String, reportID: String
  /// The app with its version.
  let versionName: String
  /// The first one is the reason.
  let words: [String]
  var frames: [CrashFrame]
  /// Of its key, or of its group once rules were applied.
  var fingerprint: CrashFingerprint
  /// Frames say more than a payload, and a payload says more than nothing.
  private let rank: Int

  init(_ stored: StoredReport) {
    (report, receivedTime, device, namespace) = (stored.id, stored.receivedTime, stored.device, stored.namespace)
    (reportID, firstRow) = (stored.reportID, stored.id)
    happenedTime = stored.happenedTime
    let meta = (try? JSONValue(parsing: stored.meta)) ?? .null  // damaged, or too deep: a crash without frames
    let word = { (keys: [String]) in keys.lazy.compactMap { meta[$0]?.string }.first { !$0.isEmpty } ?? "" }
    versionName = [word(["APP_NAME"]), word(["APP_VERSION"])].filter { !$0.isEmpty }.joined(separator: " ")
    words = Self.words.compactMap { meta[$0]?.string }.filter { !$0.isEmpty }.map(Self.line)
    frames = CrashStack.frames(meta: meta, payload: stored.payload)
    rank = (frames.isEmpty ? 0 : 2) + (stored.payload == nil ? 0 : 1)
    fingerprint = CrashFingerprint(type: stored.type, text: words.joined(separator: " "), frames: frames)
  }

  mutating func name(by names: [CodePlace: [SymbolName]]) {
    let named = CrashStack.named(frames, by: names)
    guard named != frames else { return }
    frames = named
    fingerprint = CrashFingerprint(type: Self.type, text: words.joined(separator: " "), frames: frames)
  }

  var reason: String { words.first ?? "" }

  /// By more details than the key has.
  func fingerprint(_ detail: CrashFingerprint.Detail) -> CrashFingerprint {
    CrashFingerprint(type: Self.type, text: words.joined(separator: " "), frames: frames, detail: detail)
  }

  private static func line(_ text: String) -> String {
    String(decoding: text.prefix { $0 != "\n" }.utf8.prefix(reasonBytesMax), as: UTF8.self)
  }

  /// Whether this row of a report is to be grouped rather than the other one.
  func saysMore(than other: CrashReport) -> Bool {
    rank > other.rank
  }
}

extension OpenedPacket {
  var crashes: Int { reports.rows.count { reports.bytes[$0.type].elementsEqual(CrashReport.type.utf8) } }
}
