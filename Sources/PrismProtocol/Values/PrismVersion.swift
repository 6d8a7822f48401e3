/// The version of this package. Programs, the Debian package and the changelog follow it; TidyTests compare them.
public enum PrismVersion {
  /// Semantic versioning 2.0.0: `MAJOR.MINOR.PATCH`.
  public static let current = "0.2.0"

  /// The line that `--version` prints.
  /// - Parameter commit: that the program was built from; empty: it is not known.
  public static func line(of program: String, commit: String) -> String {
    "\(program) \(current)" + (commit.isEmpty ? "" : " (\(commit))")
  }
}
