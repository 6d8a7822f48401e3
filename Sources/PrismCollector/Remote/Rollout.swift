import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// Namespaces' configurations that a part of the fleet gets before the folder has them (docs/remote-configuration.md).
struct Rollout: Sendable, Equatable {
  enum State: String, Sendable, CaseIterable {
    /// The chosen devices get it.
    case running
    /// Devices that have it keep it; no other one gets it.
    case paused
    /// Every device gets what the folder has.
    case rolledBack
    /// The folder has what was rolled out.
    case done

    var isActive: Bool { self == .running || self == .paused }
  }

  /// The share of devices that get it, and those that get it in any case.
  struct Reach: Sendable, Equatable {
    static let groupsMax = 50

    /// 0 to 100.
    var percent = 0
    /// Ids of devices, in which `*` is any characters.
    var groups: [String] = []

    func includes(_ device: String, of rollout: Int64) -> Bool {
      Rollout.share(of: device, in: rollout) < percent * 100 || groups.contains { Self.matches(device, $0) }
    }

    static func matches(_ device: String, _ group: String) -> Bool {
      let parts = group.split(separator: "*", omittingEmptySubsequences: false)
      guard parts.count > 1 else { return device == group }
      guard device.hasPrefix(parts[0]) else { return false }
      var rest = device.dropFirst(parts[0].count)
      for part in parts.dropFirst().dropLast() where !part.isEmpty {
        guard let found = rest.firstRange(of: part) else { return false }
        rest = rest[found.upperBound...]
      }
      return rest.hasSuffix(parts[parts.count - 1])
    }
  }

  /// A change of it.
  struct Event: Sendable, Equatable {
    /// The store's count at this change: even, milliseconds since 1970 as long as the clock is right.
    var time: Int64
    var rollout: Int64
    var state: State
    var reach: Reach
    /// The operator, as the log names operators; empty: the collector itself.
    var who: String
  }

  /// The version of the configuration at its start.
  let id: Int64
  let entries: [RemoteNamespace]
  /// The last one.
  var event: Event
  /// `time` of its first event.
  var begin: Int64

  /// A device's place from 0 to 9,999: always the same in one rollout, another in the next.
  static func share(of device: String, in rollout: Int64) -> Int {
    let hash = (try? Hashing.sha256(Array("prism rollout\n\(rollout)\n\(device)".utf8))) ?? []
    return Int(hash.prefix(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 10_000)
  }

  /// Whether a device with this count has it: of devices that have it, the count is odd.
  func marks(_ updateTime: Int64?) -> Bool { updateTime.map { $0 & 1 == 1 && $0 > begin } ?? false }

  /// Whether a device gets it. - Parameter holds: it has it already.
  func isFor(_ device: String, holds: Bool) -> Bool {
    switch event.state {
    case .running: holds || event.reach.includes(device, of: id)
    case .paused: holds
    case .rolledBack, .done: false
    }
  }
}
