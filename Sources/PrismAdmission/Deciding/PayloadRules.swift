/// The rules for the payloads of one namespace.
struct PayloadRules: Sendable {
  /// The largest payload that it takes.
  let bytesMax: Int
  /// A report with a larger one is stored without it.
  let leavesLargeOnesOut: Bool
  /// The public key to which payloads are sealed; nil: they are stored as they come.
  let sealKey: [UInt8]?
}
