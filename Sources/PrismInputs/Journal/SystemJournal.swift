import CLinux
import Glibc
import PrismAdmission
import PrismBase
import PrismConfig

/// systemd's journal, opened for reading by libsystemd. Made, used and let go on one thread (sd-journal(3), "Notes").
final class SystemJournal {
  struct Fault: Error { let reason: String }

  /// Bytes of one field that are read; longer ones are cut.
  private static let fieldBytesMax = 64 * 1024
  private static let entryBytesMax = 256 * 1024
  private static let dumpFieldBytesMax = 4096
  private static let localOnly: Int32 = 1

  /// All are there once they are loaded.
  private let calls: prism_journal_calls
  private let journal: UnsafeMutableRawPointer
  /// false: libsystemd opened the journal of this machine without any file of it, and passes over files without rights.
  let hasFiles: Bool

  /// - Throws: libsystemd is missing, or the journal can't be opened.
  init(_ settings: DaemonConfiguration.Journal) throws(Fault) {
    var calls = prism_journal_calls()
    guard prism_journal_load(&calls) == 0 else { throw Fault(reason: "libsystemd.so.0 is missing, or older than 246") }
    var opened: UnsafeMutableRawPointer?
    let code = settings.folder.map { calls.open_directory!(&opened, $0, 0) } ?? calls.open!(&opened, Self.localOnly)
    guard code >= 0, let opened else {
      dlclose(calls.library)
      throw Fault(reason: Self.text(code))
    }
    (self.calls, journal) = (calls, opened)
    hasFiles =
      settings.folder != nil || calls.has_runtime_files!(opened) > 0 || calls.has_persistent_files!(opened) > 0
    _ = calls.set_data_threshold!(journal, Self.fieldBytesMax)
    for term in JournalTerm.terms(of: settings) {
      for match in term.matches { _ = calls.add_match!(journal, match, match.utf8.count) }
      _ = calls.add_disjunction!(journal)
    }
  }

  deinit {
    calls.close!(journal)
    dlclose(calls.library)
  }

  private static func text(_ code: Int32) -> String { String(cString: strerror(-code)) }

  /// Goes behind the entry at `cursor`, or before the first one that was not read before it.
  func goBehind(_ cursor: String) throws(Fault) {
    try check(calls.seek_cursor!(journal, cursor))
    // The next call gives the entry itself, unless it is gone by now.
    if try check(calls.next!(journal)) > 0, calls.test_cursor!(journal, cursor) > 0 { return }
    // Time alone does not say which entries were read: the clock of another boot may begin earlier.
    passed = JournalCursor(cursor)
    try goTo(0)
  }

  /// Goes before the first entry that is not older. - Parameter time: milliseconds since 1970.
  func goTo(_ time: Int64) throws(Fault) { try check(calls.seek_realtime_usec!(journal, UInt64(max(0, time)) * 1000)) }

  /// Entries that were read before it are passed over; nil: all are new.
  private var passed: JournalCursor?

  /// - Returns: nil at the end.
  func next() throws(Fault) -> JournalEntry? {
    while try check(calls.next!(journal)) > 0 {
      var text: UnsafeMutablePointer<CChar>?
      try check(calls.get_cursor!(journal, &text))
      defer { free(text) }
      let cursor = text.map { String(cString: $0) } ?? ""
      if let passed, let here = JournalCursor(cursor), !here.isBehind(passed, currentBoot: KernelBoot.id) { continue }
      return try entry(at: cursor)
    }
    passed = nil
    return nil
  }

  private func entry(at cursor: String) throws(Fault) -> JournalEntry {
    var time: UInt64 = 0
    try check(calls.get_realtime_usec!(journal, &time))
    var entry = JournalEntry(cursor: cursor, time: Int64(time / 1000), fields: [])
    (entry.fields, entry.isCut) = try fields()
    return entry
  }

  /// The leading fields are read by name: no other field of the entry takes their room, or hides one of them.
  private func fields() throws(Fault) -> (fields: [JournalEntry.Field], isCut: Bool) {
    var fields = JournalEntry.leadingFields.compactMap(field)
    if fields.contains(where: { $0.name == "MESSAGE_ID" && $0.value.elementsEqual(JournalEntry.coredumpMessage.utf8) })
    {
      fields += JournalEntry.leadingDumpFields.compactMap(field)
    }
    let leading = fields
    var (left, isCut) = (Self.entryBytesMax, fields.contains { $0.value.count >= Self.fieldBytesMax - 128 })
    calls.restart_data!(journal)
    var (data, count): (UnsafeRawPointer?, Int) = (nil, 0)
    while try check(calls.enumerate_available_data!(journal, &data, &count)) > 0 {
      let bytes = UnsafeRawBufferPointer(start: data, count: count)
      guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = String(decoding: bytes[..<equals], as: UTF8.self)
      let value = bytes[(equals + 1)...].prefix(Self.fieldBytesMax)
      // The files and maps of a coredump are longer than all the rest.
      if name.hasPrefix("COREDUMP_") && value.count > Self.dumpFieldBytesMax { continue }
      let field = JournalEntry.Field(name: name, value: Array(value))
      if leading.contains(field) { continue }
      // The library gives no more bytes of a field than these, its name included.
      isCut = isCut || count >= Self.fieldBytesMax || left < value.count
      guard left >= value.count else { continue }
      left -= value.count
      fields.append(field)
    }
    return (fields, isCut)
  }

  /// - Returns: nil if the entry has no such field, or it can't be read.
  private func field(_ name: String) -> JournalEntry.Field? {
    var (data, count): (UnsafeRawPointer?, Int) = (nil, 0)
    guard calls.get_data!(journal, name, &data, &count) >= 0 else { return nil }
    let value = UnsafeRawBufferPointer(start: data, count: count).dropFirst(name.utf8.count + 1)
    return .init(name: name, value: Array(value.prefix(Self.fieldBytesMax)))
  }

  /// Waits for new entries, at most as long, or until `descriptor` can be read.
  func wait(milliseconds: Int32, or descriptor: Int32) throws(Fault) {
    var entries = [
      pollfd(fd: calls.get_fd!(journal), events: Int16(truncatingIfNeeded: calls.get_events!(journal)), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
    ]
    poll(&entries, 2, milliseconds)
    try check(calls.process!(journal))
  }

  @discardableResult private func check(_ code: Int32) throws(Fault) -> Int32 {
    guard code >= 0 else { throw Fault(reason: Self.text(code)) }
    return code
  }
}

/// Matches of libsystemd that an entry must all meet; those of one field are alternatives (sd_journal_add_match(3)). Pure.
struct JournalTerm: Equatable {
  var matches: [String] = []

  /// An entry that meets one of these is reported; without any, each is.
  static func terms(of settings: DaemonConfiguration.Journal) -> [JournalTerm] {
    // To libsystemd an empty term would be no term.
    if settings.match.contains(JournalMatch()) { return [] }
    return settings.match.flatMap { alternatives(of: $0) } + (settings.coredumps ? [coredumps] : [])
  }

  private static let coredumps = JournalTerm(matches: ["MESSAGE_ID=\(JournalEntry.coredumpMessage)"])

  private static func alternatives(of match: JournalMatch) -> [JournalTerm] {
    var rest: [String] = []
    if let identifier = match.identifier { rest.append("SYSLOG_IDENTIFIER=\(identifier)") }
    if let priority = match.priority { rest += priority.map { "PRIORITY=\($0)" } }
    guard let unit = match.unit else { return [JournalTerm(matches: rest)] }
    let own = ["_SYSTEMD_UNIT=\(unit)"]
    // Entries of the service manager on the unit, and the coredumps of its processes.
    let manager = ["_PID=1", "UNIT=\(unit)"]
    let dumps = coredumps.matches + ["COREDUMP_UNIT=\(unit)"]
    return [JournalTerm(matches: own + rest), JournalTerm(matches: manager + rest), JournalTerm(matches: dumps)]
  }
}

/// An entry of systemd's journal. Pure.
struct JournalEntry: Sendable, Equatable {
  /// A field as the journal has it; a name may come several times.
  struct Field: Sendable, Equatable {
    var name: String
    var value: [UInt8]
  }

  /// Its place in the journal, which no other entry has.
  var cursor: String
  /// Milliseconds since 1970.
  var time: Int64
  var fields: [Field]
  /// A field was cut or left out, because it was too long.
  var isCut = false

  /// The first value of a field.
  subscript(name: String) -> String? {
    fields.first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
  }

  /// Fields of the sender, which the journal writes, and those that decide about an entry.
  static let leadingFields = [
    "_UID", "_GID", "_PID", "_COMM", "_EXE", "_SYSTEMD_UNIT", "_TRANSPORT", "_BOOT_ID", "MESSAGE_ID", "PRIORITY",
    "MESSAGE",
  ]
  /// The same of a process that died.
  static let leadingDumpFields = [
    "COREDUMP_UID", "COREDUMP_GID", "COREDUMP_PID", "COREDUMP_COMM", "COREDUMP_EXE", "COREDUMP_UNIT",
    "COREDUMP_CGROUP", "COREDUMP_CONTAINER_CMDLINE", "COREDUMP_PACKAGE_JSON",
  ]

  /// A line that only `log.level: debug` shows. Each report makes such lines: to report them would never end.
  func isDebugLine(of executable: String?) -> Bool {
    executable != nil && self["_EXE"] == executable && self["PRIORITY"] == "7"
  }

  /// systemd-coredump(8) wrote it. The unit is the journal's own word: every program may write the message id.
  var isCoredump: Bool {
    self["MESSAGE_ID"] == Self.coredumpMessage && self["_SYSTEMD_UNIT"]?.hasPrefix("systemd-coredump@") == true
  }

  /// The unit of the process that died. Where a process of a container has no unit of its own, the control group says it.
  var dumpedUnit: String? {
    self["COREDUMP_UNIT"] ?? self["COREDUMP_CGROUP"].flatMap { ControlGroup.unit("0::\($0)") }
  }

  static let coredumpMessage = "fc2e22bc6ee647b6b90729ab34a250b1"
}

/// The parts of an entry's cursor (systemd.io/JOURNAL_EXPORT_FORMATS). Pure.
struct JournalCursor: Equatable {
  private let source: Substring, boot: Substring
  private let number: UInt64, time: UInt64

  /// nil for a text that is no cursor.
  init?(_ text: String) {
    var parts: [Substring: Substring] = [:]
    for part in text.split(separator: ";") where part.dropFirst().first == "=" {
      parts[part.prefix(1)] = part.dropFirst(2)
    }
    guard let source = parts["s"], let boot = parts["b"], let number = parts["i"].flatMap({ UInt64($0, radix: 16) }),
      let time = parts["t"].flatMap({ UInt64($0, radix: 16) })
    else { return nil }
    (self.source, self.boot, self.number, self.time) = (source, boot, number, time)
  }

  /// Whether the entry came after `other`: by the number that its writer gave it, or because it is of the boot that runs. The
  /// clock of that may begin earlier. An entry of another writer and boot is behind only if its time is.
  func isBehind(_ other: JournalCursor, currentBoot: String?) -> Bool {
    if source == other.source { return number > other.number }
    return time > other.time || boot != other.boot && currentBoot.map { boot == $0 } == true
  }
}
