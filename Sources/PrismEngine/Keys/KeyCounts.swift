import PrismConfig
import PrismControl
import PrismPacket
import PrismProtocol

/// The blocks that each key has encrypted on this device (docs/security.md, "Keys are counted"). A value that decides:
/// `KeyUse` writes what it says.
///
/// Blocks are written down before they are used, in portions: a run that is killed loses the rest of its last portion. The
/// portions grow with the use, so that a short run loses little.
struct KeyCounts: Sendable, Equatable {
  /// AES in Galois/Counter Mode with random nonces (NIST SP 800-38D, 8.3).
  static let blocksMax = 1 << 32
  static let (firstPortion, lastPortion) = (1 << 10, 1 << 20)
  /// Of more keys, those that were not used in this run are forgotten, and of these the ones with the fewest blocks.
  static let keysMax = 256

  struct Count: Sendable, Equatable {
    /// The one under which the key was used last: for people.
    var id: String
    var used: Int
    /// On the disk: what a restart begins with.
    var written: Int
    var usedInRun = 0
    /// A packet did not fit any more.
    var isClosed = false
  }

  enum Grant: Sendable, Equatable {
    case granted
    /// A portion must be written first.
    case needsPortion
    /// The key may not encrypt them.
    case usedUp
  }

  let blocksMax: Int
  private(set) var counts: [KeyFingerprint: Count] = [:]

  init(blocksMax: Int = Self.blocksMax) { self.blocksMax = blocksMax }

  var half: Int { blocksMax / 2 }

  /// 0 for a key that was never used.
  func blocks(of key: KeyFingerprint) -> Int { counts[key]?.used ?? 0 }

  func isUsedUp(_ key: KeyFingerprint) -> Bool {
    counts[key].map { $0.isClosed || $0.used >= blocksMax } ?? false
  }

  mutating func take(_ blocks: Int, of key: KeyFingerprint, id: String) -> Grant {
    var count = counts[key] ?? Count(id: id, used: 0, written: 0)
    defer { counts[key] = count }
    count.id = id
    guard !count.isClosed, blocks <= blocksMax - count.used else {
      count.isClosed = true
      return .usedUp
    }
    guard count.used + blocks <= count.written else { return .needsPortion }
    count.used += blocks
    count.usedInRun += blocks
    return .granted
  }

  /// By key, what is on the disk.
  var written: [KeyFingerprint: (id: String, blocks: Int)] {
    let kept = counts.sorted { ($0.value.usedInRun, $0.value.used) > ($1.value.usedInRun, $1.value.used) }
    return Dictionary(uniqueKeysWithValues: kept.prefix(Self.keysMax).map { ($0, ($1.id, $1.written)) })
  }

  /// Up to where to write before `blocks` may be taken. It ends at half the limit, so that the crossing is noticed.
  func portion(for blocks: Int, of key: KeyFingerprint) -> Int {
    guard let count = counts[key] else { return min(blocksMax, max(blocks, Self.firstPortion)) }
    let size = max(blocks, min(max(count.usedInRun, Self.firstPortion), Self.lastPortion))
    let least = count.used + blocks
    let end = min(count.used + size, blocksMax)
    return least <= half ? min(end, half) : end
  }

  /// It is on the disk that `key` has used `blocks`.
  mutating func wrote(_ blocks: Int, of key: KeyFingerprint) {
    guard let written = counts[key]?.written else { return }
    counts[key]?.written = max(written, blocks)
  }

  /// Gives back what is left of the portions; nothing may be taken of them any more.
  /// - Returns: whether there was a rest, so that the file must be written.
  mutating func giveBack() -> Bool {
    var hadRest = false
    for (key, count) in counts where count.written > count.used {
      counts[key]?.written = count.used
      hadRest = true
    }
    return hadRest
  }

  /// Continues with the counts of an earlier run, before anything is taken.
  mutating func restore(_ written: [KeyFingerprint: (id: String, blocks: Int)]) {
    for (key, entry) in written {
      counts[key] = Count(id: entry.id, used: entry.blocks, written: entry.blocks)
    }
  }
}

/// A key as its blocks are counted: by its bytes. The id is for people.
struct CountedKey: Sendable, Equatable {
  var id: String
  var fingerprint: KeyFingerprint

  init(id: String, secret: Secret) throws(PacketError) {
    (self.id, fingerprint) = (id, try KeyFingerprint(of: secret))
  }

  /// The keys of a configuration, each of which can encrypt.
  static func all(of daemon: DaemonConfiguration) -> [CountedKey] {
    // One that can't be named encrypts nothing either.
    daemon.keys.compactMap { try? CountedKey(id: $0.id, secret: $0.secret) }
  }
}

extension Engine {
  /// The use of each configured key, in the order of the configuration.
  nonisolated var keyReports: [(key: CountedKey, report: KeyReport)] {
    CountedKey.all(of: hub.current.daemon).map { ($0, parts.keys.report(of: $0.fingerprint)) }
  }
}
