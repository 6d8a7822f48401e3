package import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismPacket
import PrismProtocol

/// Samples of one sender that came together, counted by metric, kind and tags.
struct StatsdGroups {
  /// Of a gauge, and hashes of a set: with more a group is a report of its own.
  private static let stepsMax = 200

  fileprivate struct Group {
    let metric: String, kind: StatsdLine.Kind, tags: [JSONValue.Member]
    var samples = 0
    var numbers = Sketch()
    var steps: [JSONValue] = []
    var distinct: Set<Int> = []

    init(_ line: StatsdLine) {
      (metric, kind) = (String(decoding: line.name, as: UTF8.self), line.kind)
      tags = StatsdLine.members(of: line.tags)
    }

    /// - Returns: whether it has no room for more.
    mutating func add(_ line: StatsdLine) -> Bool {
      for value in line.values { add(value: value, rate: line.rate) }
      samples += line.values.count
      return steps.count + distinct.count >= StatsdGroups.stepsMax
    }
  }

  struct Part {
    let metric: String
    let members: [UInt8]
    let samples: Int
  }

  private var groups: [[UInt8]: Group] = [:]
  private var full: [Group] = []

  var count: Int { groups.count + full.count }

  mutating func add(_ line: StatsdLine) {
    let key = Array(line.name) + [0, line.kind.rawValue] + line.tags
    let isFull = groups[key, default: Group(line)].add(line)
    if isFull, let group = groups.removeValue(forKey: key) { full.append(group) }
  }

  /// All of them; full ones first, as they came.
  mutating func take() -> [Part] {
    defer { (groups, full) = ([:], []) }
    return (full + Array(groups.values)).map(\.part)
  }
}

extension StatsdGroups.Group {
  fileprivate mutating func add(value text: ArraySlice<UInt8>, rate: Double) {
    guard kind != .set else {
      let hash = (try? Hashing.sha256(Array(text))) ?? []
      distinct.insert(hash.prefix(8).reduce(0) { ($0 & (1 << 54 - 1)) << 8 | Int($1) })
      return
    }
    guard let number = StatsdLine.number(text) else { return }
    switch kind {
    case .gauge:
      let isStep = text.first == UInt8(ascii: "+") || text.first == UInt8(ascii: "-")
      steps.append(isStep ? .string(String(number)) : Sketch.number(number))
    case .counter: numbers.add(number / rate, isSummed: true)
    default: numbers.add(number, times: Int((1 / rate).rounded()))
    }
  }

  fileprivate var part: StatsdGroups.Part {
    var numbers: [JSONValue.Member] = [.init("count", .int(samples))]
    switch kind {
    case .gauge: numbers.append(.init("steps", .array(steps)))
    case .set: numbers.append(.init("distinct", .array(distinct.map { .int($0) })))
    default: numbers.append(.init("value", kind == .counter ? self.numbers.sums : self.numbers.json))
    }
    var members: [JSONValue.Member] = [.init("metric", .string(metric)), .init("kind", .string(kind.name))]
    if !tags.isEmpty { members.append(.init("tags", .object(tags))) }
    members.append(.init(ReportReduction.key, .object(numbers)))
    return .init(
      metric: metric, members: Array(JSONValue.object(members).bytes.dropFirst().dropLast()), samples: samples)
  }
}

/// StatsD over datagrams (docs/statsd-syslog.md): the samples of a metric, kind and tags in a window become one row.
public actor StatsdInput {
  private nonisolated let executor = DispatchQueueExecutor(label: "prism.statsd")
  /// The queue that decodes.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Handed over together. The store opens a window for each, so they take it longer than others.
  private static let reportsMax = 100

  /// The name of its samples in counters.
  package static let name = "statsd"

  private let snapshot: @Sendable () -> Snapshot
  private let time: any TimeSource
  private let log: Logger
  private var sources = PeerSources { peer in
    var mending = Mending()
    mending.waits = Mending.untilConfigured
    return SubmissionSource(peer: peer, mending: mending, sessionID: StatsdInput.name, reduces: true)
  }
  /// The namespace is not known to be missing for longer than a moment.
  private var awaitsNamespace = true

  /// - Parameter snapshot: the configuration in force, asked for all that comes together.
  public init(time: any TimeSource = SystemTime(), log: Logger, snapshot: @escaping @Sendable () -> Snapshot) {
    (self.time, self.log, self.snapshot) = (time, log, snapshot)
  }

  /// Takes datagrams to their commit. - Returns: samples and lines by what became of them.
  package func take(
    _ datagrams: [Datagram], to sink: any SubmissionSink
  ) async -> [IngestCounters.Message.Outcome: Int] {
    var counts: [IngestCounters.Message.Outcome: Int] = [:]
    var (byPeer, lines): ([ReportingPeer: StatsdGroups], Int) = ([:], 0)
    var reports = UnansweredReports(awaitsNamespace: awaitsNamespace)
    for datagram in datagrams {
      for line in datagram.bytes.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
        do throws(StatsdLine.Fault) {
          byPeer[datagram.peer, default: StatsdGroups()].add(try StatsdLine(line))
        } catch {
          counts[error.outcome, default: 0] += 1
        }
        lines += 1
        guard lines % Self.reportsMax == 0, byPeer.values.reduce(0, { $0 + $1.count }) >= Self.reportsMax
        else { continue }
        move(&byPeer, to: &reports)
        _ = await reports.submit(to: sink, waits: false, time)
      }
    }
    move(&byPeer, to: &reports)
    _ = await reports.submit(to: sink, waits: false, time)
    awaitsNamespace = reports.awaitsNamespace
    (counts[.stored], counts[.refused]) = (reports.stored, reports.refused)
    tell(counts, reports.refusal)
    return counts
  }

  private func move(_ byPeer: inout [ReportingPeer: StatsdGroups], to reports: inout UnansweredReports) {
    let configuration = snapshot().daemon.statsd
    for peer in byPeer.keys {
      let source = sources.source(of: peer)
      for part in byPeer[peer]?.take() ?? [] {
        let type = configuration.type(of: part.metric) ?? Self.name
        let report = Submission(type, in: configuration.namespace, members: part.members.span, from: source)
        reports.add(report, weight: part.samples)
      }
    }
  }

  private func tell(_ counts: [IngestCounters.Message.Outcome: Int], _ refusal: Refusal?) {
    if let refusal, refusal != .stopping {
      log.fault("statsd.refused", "samples of statsd are refused", ["cause": refusal.message])
    } else {
      log.faultEnded("statsd.refused", "samples of statsd are taken again")
    }
    let kinds: [IngestCounters.Message.Outcome] = [.malformed, .event, .serviceCheck]
    for kind in kinds where counts[kind] != nil {
      log.fault("statsd.\(kind.rawValue)", "lines of statsd are left out", ["cause": kind.rawValue])
    }
  }
}

extension StatsdLine.Fault {
  fileprivate var outcome: IngestCounters.Message.Outcome {
    switch self {
    case .malformed: .malformed
    case .event: .event
    case .serviceCheck: .serviceCheck
    }
  }
}
