import PrismBase
import PrismOutputs
import PrismProtocol

/// The parts of a report that a group of crashes needs.
struct CrashReport: Sendable {
  struct Origin: Sendable {
    let app: String, version: String
    /// The name of the app, or else of the program that crashed.
    let program: String

    /// - Parameter word: the first of some members that is a text.
    fileprivate init(_ word: ([String]) -> String) {
      app = word(["APP_NAME"]).cut(atBytes: CrashReport.wordBytesMax)
      version = word(["APP_VERSION"]).cut(atBytes: CrashReport.wordBytesMax)
      program = app.isEmpty ? CrashFrame.baseName(word(["program", "SYS_PEER_EXE"])[...]) : app
    }
  }

  static let type = "appCrash"
  private static let reasonBytesMax = 200, wordBytesMax = 128
  /// Members of the meta that say what happened; the first is the reason.
  private static let words = ["reason", "signal", "exception", "error", "message"]

  fileprivate(set) var report: Int64
  /// The lower id of its rows: a report with a payload has two.
  fileprivate(set) var firstRow: Int64
  /// When it happened, milliseconds since 1970 by the collector's clock: the created time, as it was corrected for the device's clock.
  /// If the device did not know the time, when it came.
  fileprivate(set) var happenedTime: Int64
  let device: String, namespace: String
  /// Of its report (docs/meta.md). Each process has other numbers, so that a device can't choose equal ones.
  let identity: Int
  let origin: Origin
  /// The crashes that the row is for: equal ones that the device counted on it, and those that it left out (docs/filters.md).
  fileprivate(set) var weight: Int
  /// The first one is the reason.
  let words: [String]
  var frames: [CrashFrame]
  /// Of its key, or of its group once rules were applied.
  var fingerprint: CrashFingerprint
  /// Frames say more than a payload, and a payload says more than nothing.
  fileprivate var rank: Int8

  init(_ stored: StoredReport) {
    (report, firstRow, happenedTime) = (stored.id, stored.id, stored.happenedTime)
    (device, namespace) = (stored.device, stored.namespace)
    let meta = (try? JSONValue(parsing: stored.meta)) ?? .null  // damaged, or too deep: a crash without frames
    let word = { (keys: [String]) in keys.lazy.compactMap { meta[$0]?.string }.first { !$0.isEmpty } ?? "" }
    origin = Origin(word)
    identity = [device, namespace, word(["SYS_PEER_UID"]), stored.reportID, origin.app, origin.version].hashValue
    let (repeats, share) = (max(1, meta["REPEAT_COUNT"]?.double ?? 1), meta["MONITOR_SAMPLE"]?.double ?? 1)
    weight = Int(min(ReportGrouping.weightMax, share > 0 && share < 1 ? repeats / share : repeats).rounded())
    words = Self.words.compactMap { meta[$0]?.string }.filter { !$0.isEmpty }.map(Self.line)
    frames = CrashStack.frames(meta: meta, payload: stored.payload)
    rank = (frames.isEmpty ? 0 : 2) + (stored.payload == nil ? 0 : 1)
    fingerprint = CrashFingerprint(text: "")
    fingerprint = fingerprint(nil)
  }

  mutating func name(by names: [CodePlace: [SymbolName]]) {
    let named = CrashStack.named(frames, by: names)
    guard named != frames else { return }
    frames = named
    fingerprint = fingerprint(nil)
  }

  var reason: String { words.first ?? "" }

  var versionName: String { [origin.app, origin.version].filter { !$0.isEmpty }.joined(separator: " ") }

  /// The frames, with what is known of each.
  var stack: [JSONValue] {
    let own = Set(CrashFrameTable.standard.appPlaces(frames))
    return frames.enumerated().map { place, frame in
      JSONValue([
        "text": frame.text, "function": frame.function, "file": frame.file, "line": frame.line,
        "module": frame.module, "buildId": frame.buildID,
        "offset": frame.offset.map { "0x" + String($0, radix: 16) }, "isInline": frame.isInline,
        "isApp": own.contains(place),
      ])
    }
  }

  /// By more details than the key has.
  func fingerprint(_ detail: CrashFingerprint.Detail?) -> CrashFingerprint {
    CrashFingerprint(
      type: Self.type, text: words.joined(separator: " "), frames: frames, app: origin.program, detail: detail)
  }

  private static func line(_ text: String) -> String {
    String(decoding: text.prefix { $0 != "\n" }.utf8.prefix(reasonBytesMax), as: UTF8.self)
  }

  /// Whether this row of a report is to be grouped rather than the other one.
  func saysMore(than other: CrashReport) -> Bool {
    rank > other.rank
  }
}

/// The newest crashes, each as the row of its report that says most. A report with a payload arrives twice, once of each kind, and
/// the payload may come days later.
struct RecentCrashes {
  private struct Row {
    let report: Int64, firstRow: Int64, happenedTime: Int64
    /// The fingerprint's digits.
    let fingerprint: UInt64
    let weight: Int32, rank: Int8
  }

  /// All of them take 13 MiB.
  static let countMax = 65_536

  private var rows: [Int: Row] = [:]
  /// As many crashes, from before.
  private var older: [Int: Row] = [:]

  /// Notes a row of a crash, and in the crash the first row of its report. - Returns: the other row; nil: it is the first.
  mutating func exchange(_ crash: inout CrashReport) -> CrashReport? {
    guard let row = rows[crash.identity] ?? older[crash.identity] else {
      note(crash)
      return nil
    }
    var other = crash
    (other.report, other.firstRow, other.happenedTime) = (row.report, row.firstRow, row.happenedTime)
    (other.rank, other.weight) = (row.rank, Int(row.weight))
    other.fingerprint = CrashFingerprint(text: Hex.encode(withUnsafeBytes(of: row.fingerprint.bigEndian, Array.init)))
    crash.firstRow = min(crash.firstRow, row.firstRow)
    crash.weight = max(crash.weight, other.weight)
    if crash.saysMore(than: other) { note(crash) }
    return other
  }

  private mutating func note(_ crash: CrashReport) {
    if rows.count >= Self.countMax { (older, rows) = (rows, [:]) }
    rows[crash.identity] = Row(
      report: crash.report, firstRow: crash.firstRow, happenedTime: crash.happenedTime,
      fingerprint: UInt64(crash.fingerprint.text, radix: 16) ?? 0, weight: Int32(crash.weight), rank: crash.rank)
  }
}

extension OpenedPacket {
  var crashes: Int { reports.rows.count { reports.bytes[$0.type].elementsEqual(CrashReport.type.utf8) } }
}

extension StoredReport {
  /// When it happened by the collector's clock: the created time, as it was corrected for the device's clock. If the device did not
  /// know the time, when it came.
  var happenedTime: Int64 {
    let created = createdTime.flatMap { $0 < PacketID.firstSetTime ? nil : $0 }
    return min(created ?? receivedTime, receivedTime)
  }
}
