/// The version of this package. Programs, the Debian package and the changelog follow it; TidyTests compare them.
public enum PrismVersion {
  /// Semantic versioning 2.0.0: `MAJOR.MINOR.PATCH`.
  public static let current = "0.1.0"
}
