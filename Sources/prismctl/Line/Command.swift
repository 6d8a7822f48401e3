import PrismBase

extension Command {
  /// Which of the daemon's sockets a command opens, and so which options it has for them.
  enum Socket: Sendable { case control, ingest }

  static let control = Option(
    "--control", "PATH",
    "the control socket ($PRISM_CONTROL, else that of `prismd --dev`, else /run/prism/control.sock)")
  static let ingest = Option(
    "--ingest", "PATH", "the ingest socket ($PRISM_INGEST, else that of `prismd --dev`, else /run/prism/ingest.sock)")
  private static let output = Option("--output", "text|json", "json is the same as --json")
  static let watch = Option(
    "--watch", "SECONDS", "again and again, every 2 seconds or as many as given", presence: .attached)

  /// - Parameter isWatchable: it may be repeated with `--watch`.
  init(
    words: [String], summary: String, operands: [String] = [], options: [Option] = [],
    sockets: [Socket] = [.control], isWatchable: Bool = false, example: String,
    _ work: @escaping @MainActor @Sendable (Invocation) async throws(Failure) -> Void
  ) {
    let json = options.contains { $0.name == "--json" } ? [Self.output] : []
    let shared = json + (isWatchable ? [Self.watch] : []) + sockets.map { $0 == .control ? Self.control : Self.ingest }
    self.init(
      words.joined(separator: " "), summary, operands: operands, options: options, shared: shared, example: example,
      work: .later { line throws(Failure) in
        try await work(line)
        return 0
      })
  }
}
