import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import Synchronization

/// Notes who read, exported and changed what, as reports of the namespace `prism-audit` (docs/page.md, "The audit log").
///
/// Questions that are alike are one report with their count. A change, an export and a sign-in are stored within a second or two,
/// a read within a minute; a kill loses those that wait. No body of a request and no header is noted.
final class AuditLog: Sendable {
  /// The device of these reports.
  static let device = "prism-collector"
  /// Kinds of reads that wait to be stored, and as many kinds of the others beside them; further ones are counted.
  static let entriesMax = 1000
  private static let textBytesMax = 512
  /// Of a name, and of all: as many conditions as are taken do not push the others out.
  private static let (nameBytesMax, queryBytesMax) = (72, 2048)
  /// Parameters with words of the API, names of the configuration, and numbers. Others may have an id or a value of a report.
  private static let plain: Set = [
    "namespace", "type", "kind", "table", "since", "until", "time", "before", "limit", "order", "sort", "buckets", "by",
    "key", "format", "state", "progress", "failed", "app", "version", "other", "upload", "offset", "size", "firstLine",
  ]
  private static let secondsOfReads = 60

  private struct Entry: Hashable {
    let type: String, who: String, role: String, address: String, method: String, path: String, query: String
    let status: Int
  }

  private struct State {
    var counts: [Entry: (first: Int64, count: Int)] = [:]
    var leftOut = 0
    var isUrgent = false
    var seconds = 0
  }

  private let state = Mutex(State())
  private let queue: PacketQueue
  private let time: any TimeSource
  private let log: Logger

  init(queue: PacketQueue, time: any TimeSource, log: Logger) { (self.queue, self.time, self.log) = (queue, time, log) }

  /// - Parameters:
  ///   - record: the part of the path that names a record.
  ///   - reader: nil: a stranger, whose questions are counted elsewhere.
  func note(_ request: HTTPRequest, record: String? = nil, by reader: ReaderIdentity?, status: Int) {
    guard let reader else { return }
    let text = { (text: String) in text.cut(atBytes: Self.textBytesMax) }
    let isRead = request.method == .get
    let isSignIn = request.path == PageAPI.prefix + "/session"
    let type =
      isSignIn ? isRead ? nil : "signIn" : isRead ? request.path.hasSuffix("/export") ? "export" : "read" : "change"
    guard let type else { return }  // who is signed in
    // Each refresh of a view has other times, and each part of an answer may have its own. A parameter without a value says nothing.
    let query = request.query.filter {
      !$0.value.isEmpty && (type != "read" || !["since", "until", "within"].contains($0.name))
    }
    let entry = Entry(
      type: type, who: reader.name, role: reader.role.rawValue, address: request.peer.address,
      method: request.method.rawValue,
      path: text(record.map { request.path.dropLast($0.count) + ErasedValue.noted($0) } ?? request.path),
      query: query.map { "\($0.name)=\(Self.noted($0.value, of: $0.name))" }.joined(separator: "&")
        .cut(atBytes: Self.queryBytesMax), status: status)
    let now = time.unixMilliseconds
    state.withLock { state in
      if type != "read" { state.isUrgent = true }
      guard state.counts[entry] != nil || state.counts.count < (type == "read" ? 1 : 2) * Self.entriesMax else {
        state.leftOut += 1
        return
      }
      state.counts[entry, default: (now, 0)].count += 1
    }
  }

  /// Ids and values as an erasure's receipt has them: their SHA-256, as this note stays.
  private static func noted(_ value: String, of name: String) -> String {
    if plain.contains(name) { return value.cut(atBytes: nameBytesMax) }
    guard ["meta", "field"].contains(name), let condition = try? MetaCondition(value) else {
      return ErasedValue.noted(value)
    }
    let path = MetaCondition.text(of: condition.path).cut(atBytes: nameBytesMax)
    if condition.comparison == .exists { return path }
    return "\(path) \(condition.comparison.rawValue) \(ErasedValue.noted(condition.value))"
  }

  func run() async {
    await time.keepLooking(each: .seconds(1)) {
      let isDue = state.withLock { state in
        state.seconds += 1
        return state.isUrgent || state.seconds >= Self.secondsOfReads
      }
      if isDue { await write() }
      return false
    }
  }

  /// Stores what was noted; it waits on where it can't be stored.
  func write() async {
    let (entries, leftOut) = state.withLock { state in
      defer { state = State() }
      return (state.counts, state.leftOut)
    }
    guard !entries.isEmpty else { return }
    do {
      _ = try await queue.take(try packet(entries, leftOut)).get()
      log.faultEnded("collector.audit", "the audit log is written again")
    } catch {
      log.fault("collector.audit", "the audit log can't be written", ["cause": "\(error)"])
      state.withLock { state in
        state.leftOut += leftOut
        for (entry, noted) in entries {
          guard state.counts[entry] != nil || state.counts.count < 2 * Self.entriesMax else {
            state.leftOut += noted.count
            continue
          }
          let (first, count) = state.counts[entry] ?? noted
          state.counts[entry] = (min(first, noted.first), state.counts[entry] == nil ? count : count + noted.count)
        }
      }
    }
  }

  private func packet(_ entries: [Entry: (first: Int64, count: Int)], _ leftOut: Int) throws -> OpenedPacket {
    let lines = entries.sorted { $0.value.first < $1.value.first }.map { entry, noted in
      JSONValue([
        "MONITOR_TYPE": "\(NamespaceName.audit)-\(entry.type)", "REPORT_ID": Hex.random(byteCount: 8),
        "CREATE_TIME": noted.first, "APP_NAME": Self.device, "who": entry.who, "role": entry.role,
        "address": entry.address, "method": entry.method, "path": entry.path, "query": entry.query,
        "status": entry.status, "count": noted.count, "leftOut": leftOut,
      ]).text
    }
    var random = SystemRandomNumberGenerator()
    let headers = PacketHeaders(
      deviceID: Self.device, namespace: .audit,
      packetID: PacketID(unixMilliseconds: time.unixMilliseconds, using: &random), kind: .meta, dependsOn: nil,
      itemCount: lines.count, sentTime: nil, format: BlockFormat(cipher: .aes256GCM, keyID: "", encoding: .zstd))
    let block = try MetaBlock(parsing: Array(lines.joined(separator: "\n").utf8), rowsMax: lines.count)
    return try OpenedPacket(Delivery(own: headers), ReadPacket(metas: block, payloads: []))
  }
}
