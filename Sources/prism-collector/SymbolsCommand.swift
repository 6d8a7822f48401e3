import PrismBase
import PrismCollector
import PrismProtocol

extension CollectorCommand {
  /// `prism-collector symbols …`: debug files that name the frames of crashes.
  static let symbols = CollectorCommand(
    name: "symbols", verbs: ["add": 1...Int(Int16.max), "list": 0...0, "remove": 1...Int(Int16.max)],
    options: answersAsJSON, usage: SymbolFiles.usage
  ) { line throws(Fault) in
    let folder = try line.options.symbolFolder
    switch line.verb {
    case "add": return line.operands.reduce(0) { max($0, SymbolFiles.add($1, to: folder)) }
    case "remove": return line.operands.reduce(0) { max($0, SymbolFiles.remove($1, from: folder)) }
    default:
      let listing = Listing(line, "buildId bytes time")
      for file in folder.files().values.sorted(by: { $0.buildID < $1.buildID }) { listing.add(file.json) }
      return listing.end()
    }
  }
}

private enum SymbolFiles {
  static let usage = """
    usage: prism-collector symbols add FILE… | list | remove BUILD-ID… [--json] [--config PATH | the flags of
           prism-collector]

      add     copies debug files into the folder `symbols` of the state, each by its build id: programs and libraries that are
              not stripped, and files of `objcopy --only-keep-debug` or `eu-strip -f`. Crashes of the build have names, files
              and lines from the next look on, those too that came before
      list    every file; with --json a line of JSON each
      remove  deletes files

    Exit codes: 0, 1 not every file was taken or is there, 64 usage, 78 configuration.
    """

  static func add(_ file: String, to folder: SymbolFolder) -> Int32 {
    do throws(SymbolFolder.Fault) {
      switch try folder.add(file) {
      case .added(let id): print("\(id) added: \(file.printable)")
      case .duplicate(let id): print("\(id) is there already: \(file.printable)")
      }
      return 0
    } catch {
      complain(error.message)
      return 1
    }
  }

  static func remove(_ id: String, from folder: SymbolFolder) -> Int32 {
    if folder.remove(id) { return 0 }
    complain("there is no debug file of the build \(id.printable)")
    return 1
  }
}
