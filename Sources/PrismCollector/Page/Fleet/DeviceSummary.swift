import PrismProtocol

/// A device in the list of all: the sum of its streams, with what else is known of it.
struct DeviceSummary: Sendable, Equatable {
  enum Order: String, Sendable, CaseIterable {
    case seen, silent, device, waiting, lost, packets, crash
  }

  let device: String
  private(set) var seenTime: Int64 = 0
  private(set) var packets = 0
  private(set) var waiting = 0
  private(set) var lost = 0
  private(set) var differences = 0
  private(set) var namespaces: Set<String> = []
  /// The app that it reported last; empty: its reports say neither.
  private(set) var app = "", version = ""
  /// When its last crash came, milliseconds since 1970; nil: no crash is noted.
  private(set) var crashTime: Int64?
  private var appTime: Int64 = 0
  var tags: [String: String] = [:]

  init(device: String) { self.device = device }

  mutating func add(_ stream: DeviceStream) {
    seenTime = max(seenTime, stream.receivedTime)
    packets += stream.packets
    namespaces.insert(stream.namespace)
    guard let ledger = stream.ledger.flatMap({ DeviceLedger($0) }) else { return }
    waiting += ledger.waiting
    lost += ledger.lost
    differences += ledger.difference == nil ? 0 : 1
  }

  mutating func add(_ facts: DeviceFacts.Facts) {
    crashTime = [crashTime, facts.crashTime].compactMap(\.self).max()
    guard facts.notedTime >= appTime, !facts.app.isEmpty || !facts.version.isEmpty else { return }
    (app, version, appTime) = (facts.app, facts.version, facts.notedTime)
  }

  /// Not heard of in the last 24 hours.
  func isSilent(now: Int64) -> Bool { seenTime <= now - 86_400_000 }

  /// One a device, in no order.
  static func all(of streams: [DeviceStream]) -> [DeviceSummary] {
    var summaries: [String: DeviceSummary] = [:]
    for stream in streams {
      summaries[stream.device, default: DeviceSummary(device: stream.device)].add(stream)
    }
    return Array(summaries.values)
  }

  /// Whether it comes before `other`; the largest first, but names ascend.
  func isBefore(_ other: DeviceSummary, _ order: Order) -> Bool {
    let (own, others): (Int, Int)
    switch order {
    case .device: return device < other.device
    case .seen: (own, others) = (Int(seenTime), Int(other.seenTime))
    case .silent: (own, others) = (-Int(seenTime), -Int(other.seenTime))
    case .crash: (own, others) = (Int(crashTime ?? 0), Int(other.crashTime ?? 0))
    case .waiting: (own, others) = (waiting, other.waiting)
    case .lost: (own, others) = (lost, other.lost)
    case .packets: (own, others) = (packets, other.packets)
    }
    return own == others ? device < other.device : own > others
  }

  var json: JSONValue {
    [
      "device": .string(device), "seenTime": .int(seenTime), "packets": .int(packets), "waiting": .int(waiting),
      "lost": .int(lost), "differences": .int(differences),
      "namespaces": .array(namespaces.sorted().map { .string($0) }), "app": .string(app), "version": .string(version),
      "crashTime": crashTime.map { .int($0) } ?? .null,
      "tags": .object(tags.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }),
    ]
  }
}
