public import PrismProtocol

/// A program that is connected, as its session is counted.
public struct ProgramSession: Sendable, Equatable {
  let app: AppVersion
  let userID: UInt32
  /// nil: the connection is the session.
  let id: String?
  /// It has no greeting: its unit is the app, and it may connect for each request.
  let isUnit: Bool
  let namespaces: [NamespaceName]
}

extension Session {
  /// The session of the program as it has greeted. - Returns: nil: the connection is no session.
  var program: ProgramSession? {
    let app = AppVersion(
      name: greeting.app["APP_NAME"] ?? peer.processName ?? "", version: greeting.app["APP_VERSION"] ?? "")
    switch greeting.session {
    case .off: return nil
    case .connection: return program(app, id: nil)
    case .named(let id): return program(app, id: id)
    }
  }

  /// The session of a program that can't greet, by its unit and process.
  public var unitProgram: ProgramSession? {
    guard let unit = peer.unit else { return nil }
    return program(AppVersion(name: unit, version: ""), id: "\(unit) \(peer.processID)", isUnit: true)
  }

  private func program(_ app: AppVersion, id: String?, isUnit: Bool = false) -> ProgramSession? {
    let namespaces = rules.sessionNamespaces(of: peer)
    guard !namespaces.isEmpty, !app.name.isEmpty else { return nil }
    return ProgramSession(app: app, userID: peer.accountID, id: id, isUnit: isUnit, namespaces: namespaces)
  }
}

/// The sessions of connected programs, and what they did since the last commit. Pure.
public struct SessionBook: Sendable {
  /// Events that wait: from the first number on they want a commit of their own, past the second they are left out.
  private static let (eventsWanted, eventsMax) = (1000, 10_000)

  private struct Use {
    var program: ProgramSession
    /// Connections of it.
    var count = 0
    /// Until when it is counted, on the `uptime` clock.
    var counted: Duration
    /// A unit was heard of since the last `look`.
    var isHeard = true
  }

  fileprivate struct Key: Hashable {
    let app: AppVersion
    let namespaces: [NamespaceName]
  }

  private var programs: [Int: ProgramSession] = [:]
  private var uses: [Key: Use] = [:]
  private var waiting: [NamespaceName: [SessionEvent]] = [:]
  /// Events in the commit that is under way, or whose commit failed: they go again as they are.
  private var sent: [BatchNote] = []
  private var waitingCount = 0
  private var lastMark = 0
  private let run: String

  /// Events that found no room.
  public private(set) var leftOut = 0
  /// The events are to be committed, with reports or without.
  public private(set) var isDue = false

  /// - Parameter run: not that of another start of the daemon.
  public init(run: String = String(UInt64.random(in: .min ... .max), radix: 36)) { self.run = run }

  /// Sessions that are open, by connections.
  public var count: Int { programs.count }

  /// A connection is of this program from now on. - Parameter program: nil: it is no session.
  public mutating func set(_ program: ProgramSession?, of connection: Int, now: Duration) {
    let before = programs[connection]
    if let program, program == before {
      uses[program.key]?.isHeard = true
      return
    }
    programs[connection] = program
    if let program {
      // A program that only greets again goes on with its session.
      if before == nil || before?.app != program.app || before?.id != program.id {
        add(.begin(id: program.id), program)
      }
      uses[program.key, default: Use(program: program, counted: now)].count += 1
      uses[program.key]?.isHeard = true
    }
    if let before { leave(before, now) }
  }

  /// A connection is closed.
  public mutating func end(_ connection: Int, now: Duration) {
    if programs[connection] != nil { set(nil, of: connection, now: now) }
  }

  private mutating func leave(_ program: ProgramSession, _ now: Duration) {
    guard var use = uses[program.key] else { return }
    use.count -= 1
    uses[program.key] = use
    guard use.count == 0, !program.isUnit else { return }
    count(program.key, until: now)
    uses[program.key] = nil
  }

  /// Counts the time in use until now. A unit that connects for each request is in use until it was not heard of for a while.
  public mutating func look(now: Duration) {
    for (key, use) in uses {
      guard use.count > 0 || use.isHeard else {
        uses[key] = nil
        continue
      }
      count(key, until: now)
      uses[key]?.isHeard = false
    }
    isDue = true
  }

  private mutating func count(_ key: Key, until now: Duration) {
    guard let use = uses[key], use.counted < now else { return }
    let milliseconds = Int((now - use.counted) / .milliseconds(1))
    uses[key]?.counted += .milliseconds(milliseconds)
    if milliseconds > 0 { add(.use(milliseconds: milliseconds), use.program) }
  }

  private mutating func add(_ what: SessionEvent.What, _ program: ProgramSession) {
    for namespace in program.namespaces {
      guard waitingCount < Self.eventsMax else {
        leftOut += 1
        continue
      }
      waiting[namespace, default: []].append(SessionEvent(program.app, userID: program.userID, what))
      waitingCount += 1
    }
    if waitingCount >= Self.eventsWanted { isDue = true }
  }

  /// The notes of the next commit. - Parameter all: namespaces whose hour may be over, when it is looked for.
  public mutating func takeNotes(_ all: @autoclosure () -> [NamespaceName]) -> [BatchNote] {
    if sent.isEmpty, isDue || waitingCount > 0 {
      lastMark += 1
      let names = isDue ? Set(all()).union(waiting.keys) : Set(waiting.keys)
      sent = names.sorted().map { BatchNote(waiting[$0] ?? [], mark: "\(run) \(lastMark)", to: $0) }
      (waiting, waitingCount) = ([:], 0)
    }
    isDue = false
    return sent
  }

  /// The notes are committed; without this call they go again.
  public mutating func settle() { sent = [] }
}

extension ProgramSession {
  fileprivate var key: SessionBook.Key { .init(app: app, namespaces: namespaces) }
}
