import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector symbols …`: debug files that name the frames of crashes.
  static let symbols = group(
    "symbols",
    [
      (
        "add", "FILE [FILE...]",
        """
        keep debug files, each by its build id: they name the frames of crashes
        Programs and libraries that are not stripped, and files of `objcopy --only-keep-debug` or `eu-strip -f`. Crashes of
        the build have names, files and lines from the next look on, those too that came before.
        """
      ),
      ("list", "", "every file"),
      ("remove", "BUILD-ID [BUILD-ID...]", "delete files"),
    ], options: [json]
  ) { line throws(Failure) in
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
