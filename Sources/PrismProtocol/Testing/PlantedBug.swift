#if canImport(Glibc)
  import Glibc
#endif

/// Bugs that are planted on purpose, to see the tests find them: `scripts/mutants` names for each the suite that does.
///
/// `PRISM_PLANTED_BUG=NAME` in the environment of a debug build plants one. In a release build nothing of it is left:
/// every question is answered `false` by the compiler.
public enum PlantedBug: String, Sendable, CaseIterable {
  // The store
  case answerBeforeCommit, synchronousNormal, noRowChecksum, claimOutsideTransaction, ledgerOutsideTransaction
  case clearingOtherNamespaces, frozenRowsExpire, duplicateClientIDs, releasedRowsForgotten
  // Delivery
  case unmarkOnLostAnswer, noReceiptCheck, badRequestForEver, wallClockInTimers, windowNotKept, chainNotNamed
  case wifiOnlyLeavesMetered, redirectsFollowed
  // The packet
  case metaLengthWraps

  #if DEBUG
    private static let planted = getenv("PRISM_PLANTED_BUG").flatMap { PlantedBug(rawValue: String(cString: $0)) }
    public var isPlanted: Bool { Self.planted == self }
  #else
    @inlinable @inline(__always) public var isPlanted: Bool { false }
  #endif
}
