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
  ]

  /// A line that only `log.level: debug` shows. Each report makes such lines: to report them would never end.
  func isDebugLine(of executable: String?) -> Bool {
    executable != nil && self["_EXE"] == executable && self["PRIORITY"] == "7"
  }

  /// systemd-coredump(8) wrote it. The unit is the journal's own word: every program may write the message id.
  var isCoredump: Bool {
    self["MESSAGE_ID"] == Self.coredumpMessage && self["_SYSTEMD_UNIT"]?.hasPrefix("systemd-coredump@") == true
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
