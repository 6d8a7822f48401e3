import PrismProtocol

/// A device in the list of all: the sum of its streams.
struct DeviceSummary: Sendable, Equatable {
  enum Order: String, Sendable, CaseIterable {
    case seen, device, waiting, lost, packets
  }

  let device: String
  private(set) var seenTime: Int64 = 0
  private(set) var packets = 0
  private(set) var waiting = 0
  private(set) var lost = 0
  private(set) var differences = 0
  private(set) var namespaces: Set<String> = []

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
      "namespaces": .array(namespaces.sorted().map { .string($0) }),
    ]
  }
}
