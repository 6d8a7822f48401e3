import PrismConfig

/// Matches of libsystemd that an entry must all meet; those of one field are alternatives (sd_journal_add_match(3)). Pure.
struct JournalTerm: Equatable {
  var matches: [String] = []

  /// An entry that meets one of these is reported.
  static func terms(of settings: DaemonConfiguration.Journal) -> [JournalTerm] {
    var terms = settings.match.flatMap { alternatives(of: $0) }
    if settings.coredumps { terms.append(coredumps) }
    return terms
  }

  private static let coredumps = JournalTerm(matches: ["MESSAGE_ID=\(JournalEntry.coredumpMessage)"])

  private static func alternatives(of match: JournalMatch) -> [JournalTerm] {
    var rest: [String] = []
    if let identifier = match.identifier { rest.append("SYSLOG_IDENTIFIER=\(identifier)") }
    if let priority = match.priority { rest += priority.map { "PRIORITY=\($0)" } }
    guard let unit = match.unit else {
      // An empty term would be no term. The journal's own word on how an entry came is in every entry.
      return [JournalTerm(matches: rest.isEmpty ? transports : rest)]
    }
    let own = ["_SYSTEMD_UNIT=\(unit)"]
    // Entries of the service manager on the unit, and the coredumps of its processes.
    let manager = ["_PID=1", "UNIT=\(unit)"]
    let dumps = coredumps.matches + ["COREDUMP_UNIT=\(unit)"]
    return [JournalTerm(matches: own + rest), JournalTerm(matches: manager + rest), JournalTerm(matches: dumps)]
  }

  private static let transports = ["audit", "driver", "syslog", "journal", "stdout", "kernel"].map {
    "_TRANSPORT=\($0)"
  }
}
