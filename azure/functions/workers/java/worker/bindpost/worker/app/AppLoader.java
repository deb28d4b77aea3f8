package bindpost.worker.app;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.security.SecureClassLoader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.jar.Attributes;

/** Loads the classes of the app. The worker's own classes are not visible to the app. */
public final class AppLoader extends SecureClassLoader {
    static {
        registerAsParallelCapable();
    }

    private final List<JarSource> sources = new CopyOnWriteArrayList<>();

    AppLoader() {
        super(ClassLoader.getPlatformClassLoader());
    }

    /** Adds a jar or a folder of classes. What was added before is searched first. */
    JarSource add(File file) throws IOException {
        JarSource source = new JarSource(file);
        sources.add(source);
        return source;
    }

    /** Returns whether the app has a class. It is not loaded. */
    boolean hasClass(String name) {
        String entry = entryOf(name);
        for (JarSource source : sources) {
            if (source.contains(entry)) return true;
        }
        return false;
    }

    /** Returns the contents of a file in all jars that have it. */
    List<byte[]> readAll(String name) throws IOException {
        List<byte[]> contents = new ArrayList<>();
        for (JarSource source : sources) {
            byte[] content = source.read(name);
            if (content != null) contents.add(content);
        }
        return contents;
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        String entry = entryOf(name);
        try {
            for (JarSource source : sources) {
                byte[] content = source.read(entry);
                if (content == null) continue;
                definePackage(name, source);
                return defineClass(name, content, 0, content.length, source.codeSource());
            }
        } catch (IOException error) {
            throw new ClassNotFoundException(name + " cannot be read: " + error.getMessage(), error);
        }
        throw new ClassNotFoundException(name);
    }

    private static String entryOf(String className) {
        return className.replace('.', '/') + ".class";
    }

    /** Defines the package of a class with the versions of its jar, which libraries may show. */
    private void definePackage(String className, JarSource source) {
        int dot = className.lastIndexOf('.');
        if (dot < 0 || getDefinedPackage(className.substring(0, dot)) != null) return;
        Attributes jar = source.attributes();
        try {
            definePackage(
                    className.substring(0, dot),
                    jar.getValue(Attributes.Name.SPECIFICATION_TITLE),
                    jar.getValue(Attributes.Name.SPECIFICATION_VERSION),
                    jar.getValue(Attributes.Name.SPECIFICATION_VENDOR),
                    jar.getValue(Attributes.Name.IMPLEMENTATION_TITLE),
                    jar.getValue(Attributes.Name.IMPLEMENTATION_VERSION),
                    jar.getValue(Attributes.Name.IMPLEMENTATION_VENDOR),
                    null);
        } catch (IllegalArgumentException error) {
            // Another thread has defined it.
        }
    }

    @Override
    protected URL findResource(String name) {
        for (JarSource source : sources) {
            URL found = source.find(name);
            if (found != null) return found;
        }
        return null;
    }

    @Override
    protected Enumeration<URL> findResources(String name) {
        List<URL> found = new ArrayList<>();
        for (JarSource source : sources) {
            URL address = source.find(name);
            if (address != null) found.add(address);
        }
        return Collections.enumeration(found);
    }

    /** Reads from the jars that are open. The address of a resource would open its jar again. */
    @Override
    public InputStream getResourceAsStream(String name) {
        InputStream ofPlatform = getParent().getResourceAsStream(name);
        if (ofPlatform != null) return ofPlatform;
        try {
            for (JarSource source : sources) {
                byte[] content = source.read(name);
                if (content != null) return new ByteArrayInputStream(content);
            }
        } catch (IOException error) {
            return null;
        }
        return null;
    }
}
