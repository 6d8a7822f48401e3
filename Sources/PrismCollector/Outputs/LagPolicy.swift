/// The rule for reports past `retentionDay` that outputs have not taken, once they have more than `outputLagMByte`.
public enum LagPolicy: String, Sendable, CaseIterable {
  /// They stay, without a limit.
  case hold
  /// The oldest are deleted, and counted.
  case skip
  /// New packets get 503 until the outputs took enough.
  case refuse

  /// For `/readyz` under `hold`.
  static let warning =
    "an output is more than outputLagMByte behind: reports past retentionDay stay until it takes them"
  /// The line of the log under `skip`.
  static let skipped = "reports were deleted that an output had not taken: it was too far behind, and onLag is skip"
  /// The answer to a packet under `refuse`.
  static let cause = "an output is more than outputLagMByte behind, and onLag is refuse"
}
