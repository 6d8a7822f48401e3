public import PrismBase
import PrismControl
import PrismPacket
import PrismProtocol
import Synchronization

/// Counts the blocks that each key encrypts, over restarts and kills, and grants no block past the limit of a key
/// (docs/security.md, "Keys are counted"). All namespaces that use a key share its count.
public final class KeyUse: Sendable {
  /// Why a packet may not be encrypted now.
  enum Fault: Error, Sendable, Equatable, CustomStringConvertible {
    case usedUp(id: String, blocksMax: Int)
    /// The count can't be written.
    case notWritten(String)

    var description: String {
      switch self {
      case .usedUp(let id, let blocksMax): KeyUse.usedUpText(id: id, blocksMax: blocksMax)
      case .notWritten(let cause): "the blocks of its key can't be counted: \(cause)"
      }
    }
  }

  private let state: Mutex<KeyCounts>
  private let file: KeyUseWriter
  private let log: Logger

  /// - Parameter file: keeps the counts over restarts; nil: they last as long as this object.
  public convenience init(file: (any KeptFile)?, log: Logger) {
    self.init(file: file, blocksMax: KeyCounts.blocksMax, log: log)
  }

  /// - Parameter blocksMax: of one key; another limit than 2^32 is for tests.
  init(file: (any KeptFile)?, blocksMax: Int, log: Logger) {
    (self.file, self.log) = (KeyUseWriter(file: file), log)
    state = Mutex(KeyCounts(blocksMax: blocksMax))
  }

  /// Continues with the counts of the last run. If their file is damaged, the keys that are in use count as half used.
  func load(inUse keys: [CountedKey]) async {
    var written: [KeyFingerprint: (id: String, blocks: Int)] = [:]
    do throws(KeptFileFault) {
      guard let bytes = try await file.read() else { return }
      if let counts = KeyCountFile.counts(bytes) {
        written = counts
      } else {
        written = unknown(keys)
        let path = try await file.setAside()
        log.warning("the count of the keys' blocks is damaged: keys in use count as half used", ["setAside": path])
      }
    } catch {
      if written.isEmpty { written = unknown(keys) }
      log.warning("the count of the keys' blocks can't be read: keys in use count as half used", ["cause": "\(error)"])
    }
    state.withLock { [written] in $0.restore(written) }
  }

  private func unknown(_ keys: [CountedKey]) -> [KeyFingerprint: (id: String, blocks: Int)] {
    let half = state.withLock(\.half)
    return Dictionary(keys.map { ($0.fingerprint, ($0.id, half)) }, uniquingKeysWith: { first, _ in first })
  }

  /// Tells in the log which of the keys in use need a successor, once in a run.
  func tell(of keys: [CountedKey]) {
    for key in keys {
      let report = report(of: key.fingerprint)
      let members: Logger.Fields = [
        "key": key.id, "blocks": String(report.blocks), "blocksMax": String(report.blocksMax),
      ]
      if isUsedUp(key.fingerprint) {
        log.fault(
          "key.used.\(key.fingerprint.text)", "the key encrypts no packet any more; give its namespaces a new key",
          members, level: .error)
      } else if report.isHalfUsed {
        log.fault(
          "key.half.\(key.fingerprint.text)", "the key has half of its blocks behind it; plan a new key", members)
      }
    }
  }

  // MARK: Taking

  /// Counts `blocks` that are about to be encrypted. They are on the disk when it returns.
  func take(_ blocks: Int, of key: CountedKey) async throws(Fault) {
    while true {
      switch grant(blocks, of: key) {
      case .granted: return
      case .usedUp:
        tell(of: [key])
        throw .usedUp(id: key.id, blocksMax: blocksMax)
      case .needsPortion:
        do throws(KeptFileFault) {
          try await file.write { [self] in
            portions(blocks, of: key)
          } wrote: { [self] in
            wrote($0, of: key)
          }
        } catch { throw .notWritten(error.description) }
        if grant(blocks, of: key) == .granted { return tell(of: [key]) }
      }
    }
  }

  /// Counts `blocks` of a portion that is on the disk. false: `take` must be asked.
  func takes(_ blocks: Int, of key: CountedKey) -> Bool { grant(blocks, of: key) == .granted }

  private func grant(_ blocks: Int, of key: CountedKey) -> KeyCounts.Grant {
    state.withLock { $0.take(blocks, of: key.fingerprint, id: key.id) }
  }

  /// All counts as they are to be written, and that of `key` with its next portion.
  private func portions(_ blocks: Int, of key: CountedKey) -> KeyUseWriter.Content {
    state.withLock { counts in
      let portion = counts.portion(for: blocks, of: key.fingerprint)
      var written = counts.written
      written[key.fingerprint] = (key.id, max(portion, written[key.fingerprint]?.blocks ?? 0))
      return KeyUseWriter.Content(written: written, portion: portion)
    }
  }

  private func wrote(_ content: KeyUseWriter.Content, of key: CountedKey) {
    state.withLock { $0.wrote(content.portion, of: key.fingerprint) }
  }

  /// Writes the exact counts, so that an orderly restart loses no part of a portion.
  func close() async {
    guard state.withLock({ $0.giveBack() }) else { return }
    do throws(KeptFileFault) {
      try await file.write { [self] in
        KeyUseWriter.Content(written: state.withLock(\.written), portion: 0)
      } wrote: { _ in
      }
    } catch {
      log.warning("the count of the keys' blocks stays higher than it is", ["cause": error.description])
    }
  }

  // MARK: Reading

  var blocksMax: Int { state.withLock(\.blocksMax) }
  func isUsedUp(_ key: KeyFingerprint) -> Bool { state.withLock { $0.isUsedUp(key) } }
  func report(of key: KeyFingerprint) -> KeyReport {
    state.withLock { KeyReport(blocks: $0.blocks(of: key), blocksMax: $0.blocksMax) }
  }

  static func usedUpText(id: String, blocksMax: Int) -> String {
    "the key `\(id)` has encrypted \(blocksMax) blocks, all that one key may encrypt"
  }
  /// For an operator.
  static func advice(id: String) -> String {
    "give the collector and this device a new key under a new id, set keyId of the namespaces with `\(id)` to it, then "
      + "`prismctl reload`"
  }
}
