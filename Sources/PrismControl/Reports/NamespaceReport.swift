public import PrismProtocol

/// A namespace in `StatusReport`.
public struct NamespaceReport: ControlMessage {
  /// `active`, `held` (only an operator can get delivery going again) or `retired` (not configured any more).
  public var state = "?"
  /// `closed`, or `open` after failures in a row.
  public var circuit = "?"
  /// The time of the last accepted packet, RFC 3339; nil if there was no such packet since the start.
  public var lastSuccess: String?
  /// The last failure; nil if there was no failure.
  public var lastFailure: FailureReport?
  /// nil: nothing is waited for.
  public var nextTryInSeconds: Int?
  /// The use of metered networks.
  public var flow = FlowReport()
  /// True if packets leave this machine over plain http.
  public var isPlain = false
  /// True if its file is gone: it stays as it was until a file says `retired: true`, or prismd starts again.
  public var isFileGone = false
  /// Reports that the `sample` of their type left out, ever.
  public var sampled = 0
  /// Reports that were counted on the row of an equal one, ever.
  public var collapsed = 0
  /// Ids of reports that were forgotten early, ever: a report that comes again under such an id is stored again.
  public var forgottenIDs = 0
  /// Groups of `reduce` that rested and were forgotten early, ever: their gauges begin at 0, and their streams with the next point.
  public var forgottenGroups = 0
  /// The last time since the start that reports expired; nil: there was no such time.
  public var lastExpiry: ExpiryReport?
  /// The counts of the triggers, by their names.
  public var triggers = NamedValues<TriggerReport>()
  /// The two queues.
  public var meta = QueueReport(), payload = QueueReport()
  /// The sessions of apps in the hour that goes on; nil: they are not counted.
  public var sessions: SessionReport?
  /// The store at the server; nil: no store gave its identity.
  public var store: RecordStoreReport?
  /// The tables of records that ever held a record.
  public var records = NamedValues<RecordTableReport>()

  public init() {}

  public subscript(kind: RowKind) -> QueueReport {
    get { kind == .meta ? meta : payload }
    set { if kind == .meta { meta = newValue } else { payload = newValue } }
  }

  /// Whether only an operator can get delivery going again.
  public var isHeld: Bool { state == "held" }
  /// Whether the namespace has rows and is no longer configured.
  public var isRetired: Bool { state == "retired" }
  /// Whether only one probe at a time is sent.
  public var circuitIsOpen: Bool { circuit == "open" }

  /// Rows of both kinds that are to be sent.
  public var unsentRows: Int { meta.waiting + meta.claimed + payload.waiting + payload.claimed }
  /// Dead letters of both kinds.
  public var deadRows: Int { meta.dead + payload.dead }
  /// Rows of both kinds that were ever stored.
  public var storedRows: Int { meta.ledger.stored + payload.ledger.stored }
  /// Rows of both kinds that were delivered.
  public var deliveredRows: Int { meta.ledger[.delivered] + payload.ledger[.delivered] }
  /// The age of the oldest row that waits or is in flight.
  public var oldestAgeSeconds: Int { max(meta.oldestAgeSeconds, payload.oldestAgeSeconds) }

  /// The last failure, if nothing was delivered after it. RFC 3339 in UTC sorts by time.
  public var presentFailure: FailureReport? {
    lastFailure.flatMap { $0.time >= lastSuccess ?? "" ? $0 : nil }
  }
}

/// The store at the server that answered last.
public struct RecordStoreReport: ControlMessage {
  /// Its identity.
  public var id = ""
  /// The store whose deletions of records are taken, if it is another one.
  public var trusted: String?

  public init() {}
}

/// A trigger of a namespace, through restarts.
public struct TriggerReport: ControlMessage {
  /// How often it fired, and how many rows it let go, metas and payloads together.
  public var fired = 0, rows = 0
  /// How often its bytes of a day were used up, and how often it would have fired too soon after the last time.
  public var overBudget = 0, tooSoon = 0
  /// How often enough other devices had sent, so that its rows stayed kept.
  public var declined = 0

  public init() {}
}

/// The sessions of a namespace's apps.
public struct SessionReport: ControlMessage {
  /// Versions of apps, sessions that began, crashes, and events of apps that found no place.
  public var apps = 0, sessions = 0, crashes = 0, leftOut = 0

  public init() {}

  /// Sums the apps.
  public init(_ health: AppHealth) {
    (apps, leftOut) = (health.apps.count, health.leftOut)
    for counts in health.apps.values { (sessions, crashes) = (sessions + counts.sessions, crashes + counts.crashes) }
  }
}

/// Reports that expired together.
public struct ExpiryReport: ControlMessage {
  /// RFC 3339, by the clock of that time.
  public var time = ""
  /// Metas and payloads, waiting ones and dead letters.
  public var rows = 0
  /// How long the oldest was held, in time that passed with power.
  public var heldHours = 0

  public init() {}
}

/// The budget of metered networks.
public struct FlowReport: ControlMessage {
  /// Bytes of the window that are used and allowed on metered networks, and the rest of the window.
  public var usedBytes = 0, allowedBytes = 0, windowEndsInSeconds = 0

  public init() {}

  public init(usedBytes: Int, allowedBytes: Int, windowEndsInSeconds: Int) {
    (self.usedBytes, self.allowedBytes) = (usedBytes, allowedBytes)
    self.windowEndsInSeconds = windowEndsInSeconds
  }
}

/// One kind of rows of a namespace.
public struct QueueReport: ControlMessage {
  /// Rows of one kind by state, and their bytes.
  public var waiting = 0, claimed = 0, dead = 0, bytes = 0
  /// Bytes of the rows that are kept in the ring; `bytes` is without them.
  public var keptBytes = 0
  /// Rows of these that are kept in memory, their bytes, and those that were lost with the machine's power.
  public var memoryRows = 0, memoryBytes = 0, memoryLost = 0
  /// Waiting rows that something before the collector did not let through; they are tried again after ten minutes.
  public var setBack = 0
  /// The age of the oldest row that waits or is in flight.
  public var oldestAgeSeconds = 0
  /// The counters of all rows that were ever stored.
  public var ledger = Ledger()
  /// Packets since the daemon's start, by what came of them.
  public var packets = NamedValues<Int>()
  /// Of packets since the daemon's start: before compression, and as sent.
  public var bytesRaw = 0, bytesSent = 0

  public init() {}
}

/// Why the last POST did not deliver.
public struct FailureReport: ControlMessage {
  /// The time of the failure, RFC 3339.
  public var time = ""
  /// Of HTTP; nil if no whole answer came.
  public var status: Int?
  /// The collector's `code`; nil if it gave no code.
  public var code: String?
  /// The cause, for people.
  public var cause = ""

  public init() {}
}
