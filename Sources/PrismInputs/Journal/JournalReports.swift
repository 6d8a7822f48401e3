import PrismAdmission
import PrismBase
import PrismPacket
import PrismProtocol

/// Makes a report of each entry of the journal (docs/journal.md, "What becomes of an entry"). Pure, but for the sources that it
/// remembers.
struct JournalReports {
  static let type = "journal"
  private static let fieldsMax = 64
  /// A machine's id is never sent, and these are in the common information, or of no use elsewhere.
  private static let omitted: Set<String> = [
    "_MACHINE_ID", "_SOURCE_REALTIME_TIMESTAMP", "_SOURCE_MONOTONIC_TIMESTAMP", "_SYSTEMD_INVOCATION_ID", "_STREAM_ID",
    "_SYSTEMD_SLICE", "_SYSTEMD_CGROUP", "_CAP_EFFECTIVE", "_SELINUX_CONTEXT", "_TRANSPORT", "_RUNTIME_SCOPE",
  ]

  /// An entry can't be sent again, and a coredump is an entry if its own type is not listed.
  private static let mending: Mending = {
    var mending = Mending()
    (mending.otherType, mending.cuts, mending.marks) = (ReportType(type), true, true)
    mending.waits = Mending.untilConfigured
    return mending
  }()

  private let namespace: String
  private var sources = PeerSources {
    SubmissionSource(peer: $0, mending: JournalReports.mending, sessionID: "journal")
  }
  private let lines = PartialLines<(SubmissionSource, JournalEntry)>()

  init(namespace: String) { self.namespace = namespace }

  mutating func report(_ entry: JournalEntry) -> Submission {
    let source = source(of: entry)
    if entry.isCoredump { return crash(entry, source) }
    return submission(Self.type, members(entry), entry, source)
  }

  /// The report of an entry, or of the line that it ends; nil if more of its line is to come.
  mutating func take(_ entry: JournalEntry, now: Duration) -> Submission? {
    let container = entry["CONTAINER_ID_FULL"]
    guard entry["CONTAINER_PARTIAL_MESSAGE"] == "true" || container != nil && !lines.isEmpty else {
      return report(entry)
    }
    let key = "\(container ?? "") \(entry["PRIORITY"] ?? "")"  // its streams have one each
    let origin = (source(of: entry), JournalEntry(cursor: entry.cursor, time: entry.time, fields: []))
    switch lines.take(members(entry), .journal, of: key, origin, now: now) {
    case .no: return report(entry)
    case .held: return nil
    case .whole(let line): return report(line, isWhole: true)
    }
  }

  /// No line of a container waits for its rest.
  var isWhole: Bool { lines.isEmpty }

  /// Lines whose rest did not come, that began before `time`.
  func takeOld(before time: Duration) -> [Submission] {
    lines.takeOld(before: time).map { report($0, isWhole: false) }
  }

  private func report(_ line: PartialLines<(SubmissionSource, JournalEntry)>.Line, isWhole: Bool) -> Submission {
    submission(Self.type, line.members(isWhole: isWhole), line.origin.1, line.origin.0)
  }

  private func submission(
    _ type: String, _ members: [UInt8], _ entry: JournalEntry, _ source: SubmissionSource, payload: [UInt8]? = nil
  ) -> Submission {
    let hash = (try? Hashing.sha256(Array(entry.cursor.utf8))) ?? []
    return Submission(
      type, in: namespace, members: members.span, payload: payload, createdTime: entry.time,
      reportID: ReportID("j" + Hex.encode(hash.prefix(16))), from: source)
  }

  /// The fields by their names. One that comes several times is a list.
  private func members(_ entry: JournalEntry) -> [UInt8] {
    var (names, values): ([String], [String: [[UInt8]]]) = ([], [:])
    var marks = entry.isCut ? ["cut"] : []
    for field in entry.fields where !Self.omitted.contains(field.name) {
      if values[field.name] == nil {
        guard names.count < Self.fieldsMax else { continue }
        names.append(field.name)
      }
      values[field.name, default: []].append(field.value)
      if !marks.contains("utf8"), String(validating: field.value, as: UTF8.self) == nil { marks.insert("utf8", at: 0) }
    }
    var result: [UInt8] = []
    for name in names {
      if !result.isEmpty { result.append(.comma) }
      result.appendQuoted(Array(name.utf8).span)
      result.append(.colon)
      result.append(journal: values[name] ?? [])
    }
    if result.isEmpty { result = Array(#""MESSAGE":"""#.utf8) }
    if !marks.isEmpty { result += ",\"\(MendedMeta.marker)\":\"\(marks.joined(separator: ", "))\"".utf8 }
    return result
  }

  // MARK: Coredumps

  /// The whole stack is the payload, its first frames are in the meta.
  private func crash(_ entry: JournalEntry, _ source: SubmissionSource) -> Submission {
    let message = entry["MESSAGE"] ?? ""
    let stack = CoredumpFrames(
      message, packages: entry["COREDUMP_PACKAGE_JSON"], executable: entry["COREDUMP_EXE"])
    var meta: [JSONValue.Member] = []
    func add(_ key: String, _ value: String?) { if let value { meta.append(.init(key, .string(value))) } }
    add("executable", entry["COREDUMP_EXE"])
    add("command", entry["COREDUMP_COMM"])
    add("signal", entry["COREDUMP_SIGNAL"])
    add("reason", entry["COREDUMP_SIGNAL_NAME"])
    add("unit", entry.dumpedUnit)
    add("container", entry["COREDUMP_CONTAINER_CMDLINE"].map { String($0.prefix(256)) })
    add("package", stack.package)
    add("pid", entry["COREDUMP_PID"])
    meta.append(.init("frames", .array(stack.frames)))
    let members = Array(JSONValue.object(meta).bytes.dropFirst().dropLast())
    return submission(
      ReportType.appCrash.text, members, entry, source, payload: message.isEmpty ? nil : Array(message.utf8))
  }

  // MARK: Senders

  /// By the fields that the journal itself wrote; for a coredump the process that died.
  private mutating func source(of entry: JournalEntry) -> SubmissionSource {
    let isCoredump = entry.isCoredump
    func fact(_ own: String, _ dumped: String) -> String? { entry[isCoredump ? dumped : own] }
    let (user, group) = (fact("_UID", "COREDUMP_UID"), fact("_GID", "COREDUMP_GID"))
    let (process, name) = (fact("_PID", "COREDUMP_PID"), fact("_COMM", "COREDUMP_COMM"))
    let executable = fact("_EXE", "COREDUMP_EXE")
    let unit = isCoredump ? entry.dumpedUnit : entry["_SYSTEMD_UNIT"]
    // The kernel's own entries have no user, and `_TRANSPORT` is a field of the journal's. No other entry is root's unless
    // the journal says so.
    let isKernel = !isCoredump && user == nil && entry["_TRANSPORT"] == "kernel"
    let userID = isKernel ? 0 : user.flatMap { UInt32($0) }.flatMap { $0 == .max ? nil : $0 }
    return sources.source(
      of: ReportingPeer(
        userID: userID, groupIDs: Set(group.flatMap { UInt32($0) }.map { [$0] } ?? []),
        processID: process.flatMap { Int32($0) } ?? 0, processName: name, executable: executable, unit: unit))
  }
}

extension [UInt8] {
  /// A value, or a list of several.
  fileprivate mutating func append(journal values: [[UInt8]]) {
    if values.count > 1 { append(.openBracket) }
    for (index, value) in values.enumerated() {
      if index > 0 { append(.comma) }
      appendQuoted(value.span)
    }
    if values.count > 1 { append(.closeBracket) }
  }
}
