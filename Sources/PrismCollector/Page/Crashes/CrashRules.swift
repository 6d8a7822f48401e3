import PrismProtocol

/// An operator's rule about which crashes are one group: for those with one key, also the ones that are to come.
enum CrashRule: Sendable, Equatable {
  /// They belong to the group with this fingerprint.
  case into(String)
  /// They are several groups, by more of their details.
  case split(CrashFingerprint.Detail)

  var json: JSONValue {
    switch self {
    case .into(let fingerprint): ["into": .string(fingerprint)]
    case .split(let detail): ["splitBy": .string(detail.rawValue)]
    }
  }

  init?(_ value: JSONValue?) {
    if let fingerprint = value?["into"]?.string {
      self = .into(fingerprint)
    } else if let detail = value?["splitBy"]?.string.flatMap({ CrashFingerprint.Detail(rawValue: $0) }) {
      self = .split(detail)
    } else {
      return nil
    }
  }
}

/// The rules of operators, by the fingerprints of the keys that they are about.
struct CrashRules: Sendable, Equatable {
  /// Rules that lead from one to the next.
  private static let stepsMax = 8

  var rules: [String: CrashRule] = [:]

  /// The fingerprints that rules lead a crash through: the first is that of its key, the last that of its group.
  func path(of crash: CrashReport) -> [CrashFingerprint] {
    var path = [crash.fingerprint]
    while path.count <= Self.stepsMax, let last = path.last, let rule = rules[last.text] {
      switch rule {
      case .into(let other): path.append(CrashFingerprint(text: other))
      case .split(let detail): path.append(crash.fingerprint(detail))
      }
    }
    return path
  }

  /// Whether `fingerprint` is led to `group` by rules of merging.
  func leads(_ fingerprint: String, to group: String) -> Bool {
    var found = fingerprint
    for _ in 0..<Self.stepsMax {
      if found == group { return true }
      guard case .into(let other)? = rules[found] else { return false }
      found = other
    }
    return true
  }
}
