import PrismProtocol

/// A condition on one fact of a device: `tag.region = eu`, `version < 2.10`, `seen > 7d`, `tag.lab`.
///
/// Of texts `=` takes `*` for any characters, and `~` is a part. `seen` and `crash` are ages. Like those of `MetaCondition`, no
/// comparison holds for a fact that is missing, not even `!=`.
struct DeviceCondition: Sendable, Equatable {
  private enum Fact: Equatable {
    case device, app, version, namespace
    case tag(String)
    case seen, crash
    case waiting, lost, packets

    static let names = "device, tag.NAME, app, version, namespace, seen, crash, waiting, lost, packets"

    init?(_ name: String) {
      switch name {
      case "device": self = .device
      case "app": self = .app
      case "version": self = .version
      case "namespace": self = .namespace
      case "seen": self = .seen
      case "crash": self = .crash
      case "waiting": self = .waiting
      case "lost": self = .lost
      case "packets": self = .packets
      default:
        let tag = String(name.dropFirst("tag.".count))
        guard name.hasPrefix("tag."), DeviceTags.isName(tag) else { return nil }
        self = .tag(tag)
      }
    }

    var isAge: Bool { self == .seen || self == .crash }
    var isNumber: Bool { [.waiting, .lost, .packets].contains(self) }
  }

  private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]

  private let fact: Fact
  private let comparison: MetaCondition.Comparison
  private let text: String
  /// Of an age, in milliseconds, or of a count.
  private let number: Int64
  private let version: CrashVersion?

  /// - Throws: a fault that names the fact.
  init(
    _ name: String, _ comparison: MetaCondition.Comparison, _ value: String
  ) throws(DeviceExpression.Fault) {
    guard let fact = Fact(name) else {
      throw .init(reason: "has the fact `\(name.prefix(64))`; facts are \(Fact.names)")
    }
    (self.fact, self.comparison, text) = (fact, comparison, value)
    let isOrdered = [.less, .atMost, .more, .atLeast].contains(comparison)
    guard !isOrdered || fact.isAge || fact.isNumber || fact == .version else {
      throw .init(reason: "compares `\(name)` by \(comparison.rawValue); it takes =, != and ~")
    }
    version = isOrdered && fact == .version ? CrashVersion(value[...]) : nil
    guard version != nil || !isOrdered || fact != .version else {
      throw .init(reason: "compares `version` with `\(value.prefix(32))`; a version begins with numbers, such as 2.10")
    }
    guard comparison != .exists, fact.isAge || fact.isNumber else {
      number = 0
      return
    }
    guard comparison != .contains else { throw .init(reason: "compares `\(name)` by ~; it takes = != < <= > >=") }
    let found = fact.isAge ? Self.milliseconds(value) : Int64(value)
    guard let found else {
      let wanted = fact.isAge ? "an age such as 90s, 15m, 24h, 7d or 2w" : "a whole number"
      throw .init(reason: "compares `\(name)` with `\(value.prefix(32))`, must be \(wanted)")
    }
    number = found
  }

  private static func milliseconds(_ text: String) -> Int64? {
    guard let unit = text.last.flatMap({ units[$0] }), let count = Int32(text.dropLast()), count >= 0 else {
      return nil
    }
    return Int64(count) * unit * 1000
  }

  /// - Parameter now: milliseconds since 1970.
  func holds(for device: DeviceSummary, now: Int64) -> Bool {
    switch fact {
    case .device: holds(text: device.device)
    case .app: holds(text: device.app)
    case .tag(let name): device.tags[name].map { holds(text: $0) } ?? false
    case .namespace:
      comparison == .notEqual
        ? device.namespaces.allSatisfy { holds(text: $0) } : device.namespaces.contains { holds(text: $0) }
    case .version: holds(version: device.version)
    case .seen: holds(number: now - device.seenTime)
    case .crash: device.crashTime.map { holds(number: now - $0) } ?? false
    case .waiting: holds(number: Int64(device.waiting))
    case .lost: holds(number: Int64(device.lost))
    case .packets: holds(number: Int64(device.packets))
    }
  }

  private func holds(text given: String) -> Bool {
    guard !given.isEmpty else { return false }
    return switch comparison {
    case .equal: Rollout.Reach.matches(given, text)
    case .notEqual: !Rollout.Reach.matches(given, text)
    case .contains: given.contains(text)
    default: true
    }
  }

  private func holds(version given: String) -> Bool {
    guard let version else { return holds(text: given) }
    guard let own = CrashVersion(given[...]) else { return false }
    return switch comparison {
    case .less: own.isBefore(version)
    case .atMost: !version.isBefore(own)
    case .more: version.isBefore(own)
    default: !own.isBefore(version)
    }
  }

  private func holds(number given: Int64) -> Bool {
    switch comparison {
    case .equal: given == number
    case .notEqual: given != number
    case .less: given < number
    case .atMost: given <= number
    case .more: given > number
    case .atLeast: given >= number
    case .exists, .contains: true
    }
  }
}
